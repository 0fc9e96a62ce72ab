// SPDX-License-Identifier: Apache-2.0
#include "dump/names.hpp"

namespace msprobe::dump {

std::pair<std::string_view, std::string_view> split_last(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {{}, name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

std::vector<std::string_view> split(std::string_view name, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = name.find(separator);
    parts.push_back(name.substr(0, at));
    if (at == std::string_view::npos) return parts;
    name.remove_prefix(at + 1);
  }
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view EntryName::operation() const {
  return split_last(base).second;
}

std::optional<EntryName> parse_entry_name(std::string_view name) {
  const auto [front, last] = split_last(name);
  const auto [base, second] = split_last(front);
  EntryName result;
  result.is_module = name.starts_with("Module.") || name.starts_with("Cell.");
  if (last == "parameters_grad") {
    result.base = front;
    result.direction = Direction::parameters_grad;
    return result;
  }
  if (second == "parameters_grad") {
    result.base = base;
    result.direction = Direction::parameters_grad;
    result.call = last;
    return result;
  }
  const auto direction = [](std::string_view part) -> std::optional<Direction> {
    if (part == "forward") return Direction::forward;
    if (part == "backward") return Direction::backward;
    return std::nullopt;
  };
  result.base = base;
  if (const auto by_last = direction(last)) {
    result.direction = *by_last;
    result.call = second;
    result.call_first = true;
    return result;
  }
  if (const auto by_second = direction(second)) {
    result.direction = *by_second;
    result.call = last;
    return result;
  }
  if (last == "debug") {
    result.direction = Direction::debug;
    result.call = second;
    return result;
  }
  return std::nullopt;
}

}  // namespace msprobe::dump
