// SPDX-License-Identifier: Apache-2.0
#include "graph/vis/short_stack.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "dump/names.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_word(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
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
        std::all_of(name.begin(), name.end(), is_letter))
      return true;
  }
  return false;
}

/// `fc1` of `Module.layers.0.fc1.Linear.forward.0`.
std::optional<std::string_view> own_name(std::string_view module) {
  constexpr std::size_t kFromEnd = 4;
  const std::vector<std::string_view> parts = dump::split(module);
  if (parts.size() < kFromEnd) return std::nullopt;
  return parts[parts.size() - kFromEnd];
}

bool is_module_name(std::string_view node) {
  static constexpr std::array<std::string_view, 4> kBegins = {"Module.", "Cell.", "optimizer", "clip_grad"};
  return std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return node.starts_with(begin); });
}

}  // namespace

std::string short_stack(std::string_view node, std::string_view stack) {
  const auto lines = nlohmann::json::parse(stack, nullptr, false);
  if (!lines.is_array() || lines.size() < 2) return std::string(stack);
  std::optional<std::size_t> kept;
  const bool is_module = is_module_name(node);
  const std::optional<std::string_view> name = is_module ? own_name(node) : std::nullopt;
  if (is_module && !name) return std::string(stack);
  const std::string call = is_module ? std::string(*name) + "(" : "";
  for (std::size_t i = 0; i < lines.size() && !kept; ++i) {
    if (!lines[i].is_string()) continue;
    const auto& line = lines[i].get_ref<const std::string&>();
    if (is_module && line.find(call) != std::string::npos) kept = i;
    if (!is_module && i + 1 < lines.size() && calls_wrapper(line)) kept = i + 1;
  }
  if (!kept || !lines[*kept].is_string()) return std::string(stack);
  JsonWriter json;
  json.value(std::vector<std::string>{lines[*kept].get<std::string>()});
  return json.take();
}

}  // namespace msprobe::graph
