// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_rating.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "formats/pickle_names.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::formats {
namespace {

/// The words of a table.
class Words {
 public:
  explicit Words(std::string_view table) {
    while (!table.empty()) {
      const std::size_t end = std::min(table.find(' '), table.size());
      words_.insert(table.substr(0, end));
      table.remove_prefix(std::min(end + 1, table.size()));
    }
  }
  bool has(std::string_view word) const { return words_.contains(word); }

 private:
  std::unordered_set<std::string_view> words_;
};

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

std::string_view without_underscores(std::string_view word) {
  const std::size_t begin = std::min(word.find_first_not_of('_'), word.size());
  return word.substr(begin, word.find_last_not_of('_') + 1 - begin);
}

/// Calls `test` with every part between dots until it says true.
template <typename Test>
bool any_part(std::string_view text, Test test) {
  while (!text.empty()) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    if (test(text.substr(0, dot))) return true;
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  return false;
}

// A module of Python's library counts as dangerous unless a list has it: most of them run code, open files or
// give access to modules that do, and data need only a few of their types.
bool is_standard_module(std::string_view part) {
  static const Words kStandard(kStandardModules);
  return kStandard.has(without_underscores(part));
}

bool in_standard_module(std::string_view full) {
  static const Words kComputing(kComputingModules);
  const std::string_view first = full.substr(0, full.find('.'));
  return is_standard_module(first) && !kComputing.has(without_underscores(first));
}

/// Is the name that of a module that acts, or below one?
bool in_acting_module(std::string_view full) {
  static const Words kActing(kActingModules);
  for (std::size_t end = full.find('.'); end != std::string_view::npos; end = full.find('.', end + 1)) {
    if (kActing.has(full.substr(0, end))) return true;
  }
  return kActing.has(full);
}

// A name may lead on: `os.system` of the module `torch` is os.system, however it was reached, and so is a
// module that another one has imported.
bool passes_through(std::string_view name) {
  // Cython's functions of that name make objects of its types.
  if (name.starts_with("__pyx_unpickle_") && name.find('.') == std::string_view::npos) return false;
  return any_part(name, [](std::string_view part) {
    return part.starts_with("__") || (!part.empty() && !is_upper(part.front()) && is_standard_module(part));
  });
}

/// Names such as `load`, `load_state` and `_loadFrom`: a function with such a name acts when it is called.
bool is_named_for_an_act(std::string_view part) {
  static const Words kNames(kActingNames);
  static const Words kVerbs(kActingVerbs);
  const std::string_view word = without_underscores(part);
  const auto* end = std::ranges::find_if(word, [](char c) { return c == '_' || is_upper(c); });
  return kNames.has(word) || kVerbs.has(word.substr(0, static_cast<std::size_t>(end - word.begin())));
}

bool is_exception(std::string_view module, std::string_view name) {
  if (module != "builtins" || name.find('.') != std::string_view::npos) return false;
  return name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Warning");
}

bool is_torch_type(std::string_view module, std::string_view name) {
  if (module == "torch" && tensor::dtype_from_torch(name)) return true;
  const bool holds_storages = module == "torch" || module == "torch.cuda" || module == "torch_npu" ||
                              module == "torch.npu" || module == "torch_npu.npu" || module == "torch.storage";
  return holds_storages && tensor::dtype_from_storage_class(name);
}

/// The name in Python 3 of a module that data of Python 2 needs.
std::string_view renamed(std::string_view module) {
  if (module == "__builtin__" || module == "exceptions") return "builtins";
  return module == "copy_reg" ? "copyreg" : module;
}

/// A name may hold the rest of the module's: `numpy` and `f2py.x` are `numpy.f2py` and `x`.
std::string full_name(std::string_view module, std::string_view name) {
  std::string full(module);
  full += '.';
  full += name;
  return full;
}

}  // namespace

std::string_view rating_name(Rating rating) {
  constexpr std::string_view kNames[] = {"ok", "unknown", "dangerous"};
  return kNames[static_cast<std::size_t>(rating)];
}

bool acts_by_its_module(std::string_view module, std::string_view name) {
  static const Words kDangerous(kDangerousNames);
  static const Words kRunning(kRunningModules);
  const std::string full = full_name(renamed(module), name);
  return in_standard_module(full) || in_acting_module(full) || kDangerous.has(full) ||
         any_part(full, [&](std::string_view part) { return kRunning.has(part); });
}

bool is_data_class(std::string_view module, std::string_view name) {
  static const Words kClasses(kDataClasses);
  return kClasses.has(full_name(module, name));
}

Rating rate_global(std::string_view module, std::string_view name) {
  static const Words kKnown(kKnownNames);
  static const Words kPlain(kPlainNames);
  const std::string full = full_name(renamed(module), name);
  if (kKnown.has(full) || is_torch_type(module, name) || is_data_class(module, name)) return Rating::ok;
  if (kPlain.has(full) || is_exception(renamed(module), name)) return Rating::unknown;
  const bool acts =
      acts_by_its_module(module, name) || passes_through(name) || any_part(name, is_named_for_an_act);
  return acts ? Rating::dangerous : Rating::unknown;
}

}  // namespace msprobe::formats
