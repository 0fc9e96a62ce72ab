// SPDX-License-Identifier: Apache-2.0
#include "dump/operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/names.hpp"
#include "dump/operation_rows.hpp"
#include "support/rule_file.hpp"
#include "support/text.hpp"

namespace msprobe::dump {
namespace {

/// Lower case, without the marks of operators (`__add__`, `__iadd__`, `__radd__`) and of work in place
/// (`add_`). Most names are so already.
class PlainOperation {
 public:
  explicit PlainOperation(std::string_view name) : plain_(name) {
    const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    const bool has_marks = !name.empty() && (name.front() == '_' || name.back() == '_');
    if (!has_marks && std::ranges::all_of(name, is_plain)) return;
    const bool is_operator = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
    for (const char c : name) {
      if (c != '_' || (!is_operator && !changed_.empty()))
        changed_ += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    while (!changed_.empty() && changed_.back() == '_') changed_.pop_back();
    plain_ = changed_;
  }
  PlainOperation(const PlainOperation&) = delete;
  PlainOperation& operator=(const PlainOperation&) = delete;

  std::string_view text() const { return plain_; }

 private:
  std::string changed_;
  std::string_view plain_;
};

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

using Node = RuleFile::Node;

/// Rows of a user's file, and the texts that they point to.
class OwnRows {
 public:
  static OwnRows& get() {
    static OwnRows* const kRows = new OwnRows;
    return *kRows;
  }

  bool is_empty() const { return rows_.empty(); }

  const KnownOperation* find(std::string_view name) const {
    const auto found = rows_.find(name);
    return found == rows_.end() ? nullptr : &found->second;
  }

  void read(const RuleFile& file) {
    if (file.root().is_null()) return;
    if (file.root().kind != RuleFile::Kind::map)
      file.fail(file.root(), "operations must be a mapping of names to rows");
    for (const auto& [name, row] : file.members(file.root())) add(file, *name, *row);
  }

 private:
  void add(const RuleFile& file, const Node& name, const Node& row) {
    if (row.kind != RuleFile::Kind::map)
      file.fail(name, display(name.text) + " must be a mapping, as in `my_norm: {kind: norm}`");
    KnownOperation operation;
    operation.name = operation.row = plain_name(file, name);
    std::vector<std::string_view> names{operation.name};
    std::vector<KnownOperation::Signature> signatures;
    bool has_nature = false;
    for (const auto& [key, value] : file.members(row)) {
      if (key->text == "kind") {
        operation.kind = one_of(file, *key, *value, kKindNames);
      } else if (key->text == "nature") {
        operation.nature = one_of(file, *key, *value, kNatureNames);
        has_nature = true;
      } else if (key->text == "is") {
        for (const Node* trait : words(file, *key, *value))
          operation.traits =
              static_cast<std::uint16_t>(operation.traits | one_of(file, *key, *trait, kTraitNames));
      } else if (key->text == "also") {
        for (const Node* other : words(file, *key, *value)) names.push_back(plain_name(file, *other));
      } else if (key->text == "signature") {
        if (!value->is_text()) file.fail(*key, "signature must be a text, as in \"input weight eps=1e-06\"");
        signatures.push_back({{}, keep(value->text)});
      } else if (key->text == "recorded") {
        words(file, *key, *value);  // the collector's, as is `risk`
      } else if (key->text == "risk") {
        if (value->text != "core" && value->text != "low") file.fail(*key, "risk must be core or low");
      } else if (key->text == "replay") {
        operation.replay = one_of(file, *key, *value, kReplayNames);
      } else if (key->text != "parameters" && key->text != "running_statistics") {
        file.fail(*key, "unknown key " + display(key->text) +
                            "; there are kind, nature, risk, recorded, is, also, signature, parameters, "
                            "running_statistics and replay");
      }
    }
    if (operation.kind == OperationKind::unknown) file.fail(name, display(name.text) + " needs a kind");
    if (!has_nature) operation.nature = implied_nature(operation.kind);
    const std::string_view signature = signatures.empty() ? std::string_view() : signatures.front().arguments;
    for (const auto& [key, value] : file.members(row)) {
      if (key->text == "parameters") operation.parameters = positions(file, *key, *value, signature);
      if (key->text == "running_statistics")
        operation.running_statistics = positions(file, *key, *value, signature);
    }
    operation.signatures = signatures_.emplace_back(std::move(signatures));
    for (const std::string_view each : names) {
      operation.name = each;
      rows_.insert_or_assign(each, operation);
    }
  }

  std::string_view keep(std::string_view text) { return texts_.emplace_back(text); }

  std::string_view plain_name(const RuleFile& file, const Node& node) {
    const std::string_view name = node.is_text() ? split_last(node.text).second : std::string_view();
    const PlainOperation plain(name);
    if (plain.text().empty()) file.fail(node, "must be the name of an operation");
    return keep(plain.text());
  }

  static std::vector<const Node*> words(const RuleFile& file, const Node& key, const Node& list) {
    std::vector<const Node*> words = file.elements(list);
    if (list.kind != RuleFile::Kind::list || !std::ranges::all_of(words, &Node::is_text))
      file.fail(key, display(key.text) + " must be a list of names");
    return words;
  }

  template <typename Value, std::size_t kSize>
  static Value one_of(const RuleFile& file, const Node& key, const Node& word,
                      const Named<Value> (&names)[kSize]) {
    std::string all;
    for (const Named<Value>& each : names) {
      if (word.is_text() && each.name == word.text) return each.value;
      all += (all.empty() ? "" : ", ") + std::string(each.name);
    }
    file.fail(word, fmt::format("{} {} is not one of {}", display(key.text), display(word.text), all));
  }

  static Positions positions(const RuleFile& file, const Node& key, const Node& list,
                             std::string_view signature) {
    Positions found = 0;
    for (const Node* word : words(file, key, list)) {
      const std::optional<std::size_t> position = position_of(signature, word->text);
      if (!position || *position >= 8 * sizeof found)
        file.fail(*word,
                  fmt::format("{}: {} is not in the signature", display(key.text), display(word->text)));
      found |= Positions{1} << *position;
    }
    return found;
  }

  std::map<std::string_view, KnownOperation> rows_;
  std::deque<std::string> texts_;
  std::deque<std::vector<KnownOperation::Signature>> signatures_;
};

const KnownOperation* find_built_in(std::string_view name) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const KnownOperation*> by_name;
    for (const KnownOperation& operation : kOperations) by_name.emplace(operation.name, &operation);
    return by_name;
  }();
  const auto found = rows.find(PlainOperation(name).text());
  return found == rows.end() ? nullptr : found->second;
}

/// The answer to an earlier question.
struct Remembered {
  static constexpr std::size_t kLongest = 39;  // longer names are rare

  Remembered() = default;
  explicit Remembered(std::string_view name) : size(name.size()), row(find_built_in(name)) {
    std::ranges::copy(name, letters.begin());
  }
  std::string_view name() const { return {letters.data(), size}; }

  std::array<char, kLongest> letters{};
  std::size_t size = 0;
  const KnownOperation* row = nullptr;
};

/// `ulp`, `ulp_`, `ulp=__matmul__`, `write_only_inputs/tensor`
void add_listed(const KnownOperation& operation, std::string_view list, std::vector<Listed>& found) {
  if (operation.name != operation.row) return;
  for (const std::string_view word : split(operation.rules, " ")) {
    std::vector<std::string_view> parts = split(word, "/");
    const std::vector<std::string_view> spelled = split(parts.front(), "=");
    parts.erase(parts.begin());
    const bool also_in_place = spelled.front().ends_with('_');
    if (spelled.front().substr(0, spelled.front().size() - (also_in_place ? 1 : 0)) != list) continue;
    const std::string name(spelled.size() > 1 ? spelled[1] : operation.name);
    found.push_back({name, parts, &operation});
    if (also_in_place) found.push_back({name + "_", parts, &operation});
  }
}

}  // namespace

void add_operations(const std::string& path) {
  OwnRows::get().read(RuleFile::open(path));
}

const KnownOperation* find_operation(std::string_view name) {
  const OwnRows& own_rows = OwnRows::get();
  if (!own_rows.is_empty()) {
    const KnownOperation* const own = own_rows.find(PlainOperation(name).text());
    if (own != nullptr) return own;
  }
  if (name.empty() || name.size() > Remembered::kLongest) return find_built_in(name);
  // The rules ask several times about each call, and most calls are of a few operations.
  constexpr std::size_t kRemembered = 64;
  thread_local std::array<Remembered, kRemembered> remembered;
  const auto letter = [&](std::size_t at) { return static_cast<unsigned char>(name[at]); };
  Remembered& last =
      remembered[(name.size() + letter(0) + letter(name.size() / 2) + letter(name.size() - 1)) % kRemembered];
  if (last.name() != name) last = Remembered(name);
  return last.row;
}

std::string_view arguments_of(std::string_view operation_with_prefix) {
  const std::string_view prefix = operation_with_prefix.substr(0, operation_with_prefix.find('.'));
  const KnownOperation* const operation = find_operation(split_last(operation_with_prefix).second);
  return operation == nullptr ? std::string_view() : arguments_of(*operation, prefix);
}

std::string_view arguments_of(const KnownOperation& operation, std::string_view prefix) {
  const bool is_called_so = operation.prefixes.empty() || has_word(operation.prefixes, prefix);
  return is_called_so ? arguments_like(operation, prefix) : std::string_view();
}

std::string_view arguments_like(const KnownOperation& operation, std::string_view prefix) {
  std::string_view arguments;
  for (const KnownOperation::Signature& each : operation.signatures) {
    if (each.prefix == prefix) return each.arguments;
    if (each.prefix.empty()) arguments = each.arguments;
  }
  return arguments;
}

std::vector<Listed> listed_operations(std::string_view list) {
  std::vector<Listed> found;
  for (const KnownOperation& operation : kOperations) add_listed(operation, list, found);
  return found;
}

bool is_listed(std::string_view list, std::string_view operation) {
  std::vector<Listed> found;
  if (const KnownOperation* const row = find_operation(operation)) add_listed(*row, list, found);
  return std::ranges::find(found, operation, &Listed::name) != found.end();
}

std::optional<std::size_t> position_of(std::string_view signature, std::string_view argument) {
  const std::vector<std::string_view> arguments = split(signature, " ");
  const auto at = std::ranges::find(
      arguments, argument, [](std::string_view each) { return each.substr(0, each.find_first_of("=@")); });
  if (at == arguments.end()) return std::nullopt;
  return static_cast<std::size_t>(at - arguments.begin());
}

bool has_in_place_mark(std::string_view name) {
  const bool is_operator = name.starts_with("__") && name.ends_with("__");
  if (!is_operator) return name.ends_with('_') && name.size() > 1;
  return name == "__setitem__" || (name.starts_with("__i") && name != "__invert__");
}

}  // namespace msprobe::dump
