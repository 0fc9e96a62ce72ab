// SPDX-License-Identifier: Apache-2.0
#include "graph/vis/short_stack.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "dump/names.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::graph {

using dump::Entry;

namespace {

bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// Does the line call something named `SomethingTemplate`, or `api_template`?
bool calls_wrapper(std::string_view line) {
  constexpr std::string_view kTemplate = "Template";
  constexpr std::string_view kApiTemplate = "api_template";
  for (std::size_t end = line.find('('); end != std::string_view::npos; end = line.find('(', end + 1)) {
    std::size_t begin = end;
    while (begin > 0 && is_word(line[begin - 1])) --begin;
    const std::string_view name = line.substr(begin, end - begin);
    if (name == kApiTemplate) return true;
    if (name.size() > kTemplate.size() && name.ends_with(kTemplate) && name[0] >= 'A' && name[0] <= 'Z' &&
        std::ranges::all_of(name, is_letter))
      return true;
  }
  return false;
}

/// `fc1` of `Module.layers.0.fc1.Linear.forward.0`.
std::optional<std::string_view> own_name(std::string_view module) {
  constexpr std::size_t kFromEnd = 4;
  const std::vector<std::string_view> parts = split(module, ".");
  if (parts.size() < kFromEnd) return std::nullopt;
  return parts[parts.size() - kFromEnd];
}

bool is_module_name(std::string_view node) {
  static constexpr std::array<std::string_view, 4> kBegins = {"Module.", "Cell.", "optimizer", "clip_grad"};
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return node.starts_with(begin); });
}

}  // namespace

Entry::Index line_that_counts(std::string_view node, const Entry& stack) {
  const bool is_module = is_module_name(node);
  const std::optional<std::string_view> name = is_module ? own_name(node) : std::nullopt;
  if (is_module && !name) return Entry::kNone;
  const std::string call = is_module ? std::string(*name) + "(" : "";
  Entry::Index found = Entry::kNone;
  std::size_t lines = 0;
  bool is_next = false;
  stack.children(0, [&](Entry::Index line) {
    ++lines;
    if (found != Entry::kNone) return;
    const std::string_view text = stack.string(line);
    if (is_module ? text.find(call) != std::string_view::npos : is_next) found = line;
    is_next = calls_wrapper(text);
  });
  // A stack with a single line is shown unchanged.
  return lines > 1 && stack.is(found, dump::NodeKind::string) ? found : Entry::kNone;
}

}  // namespace msprobe::graph
