// SPDX-License-Identifier: Apache-2.0
#include "dump/names.hpp"

#include <cstring>

namespace msprobe::dump {

std::pair<std::string_view, std::string_view> split_last(std::string_view name) {
  if (name.empty()) return {};
  // memrchr is faster than the library's rfind, which looks at one character at a time.
  const auto* const found = static_cast<const char*>(::memrchr(name.data(), '.', name.size()));
  if (found == nullptr) return {{}, name};
  const auto dot = static_cast<std::size_t>(found - name.data());
  return {name.substr(0, dot), name.substr(dot + 1)};
}

std::string_view EntryName::operation() const {
  return split_last(base).second;
}

NameParts::NameParts(std::string_view name, const EntryName& parsed)
    : base_size(static_cast<std::uint32_t>(parsed.base.size())),
      call_begin(parsed.call.empty() ? 0 : static_cast<std::uint32_t>(parsed.call.data() - name.data())),
      call_size(static_cast<std::uint32_t>(parsed.call.size())),
      direction(parsed.direction),
      call_first(parsed.call_first),
      is_module(parsed.is_module) {}

EntryName NameParts::of(std::string_view name) const {
  return {name.substr(0, base_size), direction, name.substr(call_begin, call_size), call_first, is_module};
}

std::optional<EntryName> parse_entry_name(std::string_view name) {
  const auto [front, last] = split_last(name);
  const auto [base, second] = split_last(front);
  const bool is_module = name.starts_with("Module.") || name.starts_with("Cell.");
  const auto is_call = [](std::string_view part) { return part == "forward" || part == "backward"; };
  const auto direction = [](std::string_view part) {
    return part == "forward" ? Direction::forward : Direction::backward;
  };
  if (last == "parameters_grad") return EntryName{front, Direction::parameters_grad, {}, false, is_module};
  if (second == "parameters_grad") return EntryName{base, Direction::parameters_grad, last, false, is_module};
  if (is_call(last)) return EntryName{base, direction(last), second, true, is_module};
  if (is_call(second)) return EntryName{base, direction(second), last, false, is_module};
  if (last == "debug") return EntryName{base, Direction::debug, second, false, is_module};
  return std::nullopt;
}

}  // namespace msprobe::dump
