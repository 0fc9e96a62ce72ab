// SPDX-License-Identifier: Apache-2.0
#include "dump/operations.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include "dump/names.hpp"
#include "dump/operation_rows.hpp"

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

}  // namespace

const Operation* find_operation(std::string_view name) {
  const PlainOperation plain(name);
  const auto* const found = std::ranges::lower_bound(kOperations, plain.text(), {}, &Operation::name);
  return found != std::end(kOperations) && found->name == plain.text() ? found : nullptr;
}

std::string_view arguments_of(std::string_view operation_with_prefix) {
  const std::string_view prefix = operation_with_prefix.substr(0, operation_with_prefix.find('.'));
  const Operation* const operation = find_operation(split_last(operation_with_prefix).second);
  if (operation == nullptr || !has_word(operation->prefixes, prefix)) return {};
  std::string_view arguments;
  for (const Operation::Signature& each : operation->signatures) {
    if (each.prefix == prefix) return each.arguments;
    if (each.prefix.empty()) arguments = each.arguments;
  }
  return arguments;
}

bool has_in_place_mark(std::string_view name) {
  const bool is_operator = name.starts_with("__") && name.ends_with("__");
  if (!is_operator) return name.ends_with('_') && name.size() > 1;
  return name == "__setitem__" || (name.starts_with("__i") && name != "__invert__");
}

}  // namespace msprobe::dump
