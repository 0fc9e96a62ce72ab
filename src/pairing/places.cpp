// SPDX-License-Identifier: Apache-2.0
#include "pairing/places.hpp"

#include "dump/names.hpp"
#include "support/wrapper_names.hpp"

namespace msprobe::pairing {
namespace {

constexpr std::string_view kKeywordFront = ".kwargs.";
constexpr std::string_view kInputFront = ".input.";

}  // namespace

/// Cuts a text at its dots, and leaves out the parts that wrappers add.
std::string without_wrappers(std::string_view path) {
  std::string out;
  bool first = true;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
    if ((out.empty() && part == "module") || is_wrapper_component(part)) continue;
    if (!first) out += '.';
    first = false;
    out += part;
  }
  return out;
}

std::string_view module_path(std::string_view entry) {
  const auto parsed = dump::parse_entry_name(entry);
  if (!parsed || !parsed->is_module) return {};
  const std::string_view base = dump::split_last(parsed->base).first;
  const std::size_t dot = base.find('.');
  return dot == std::string_view::npos ? std::string_view{} : base.substr(dot + 1);
}

Place place_of(const dump::Side& side, const dump::Item& item) {
  const std::string_view entry = side.text(side.apis[item.api].name);
  std::string_view name = side.name(item);
  if (!name.starts_with(entry)) return {{}, name};
  name.remove_prefix(entry.size());
  const bool keyword = name.starts_with(kKeywordFront);
  if (keyword || name.starts_with(kInputFront))
    return {kInputFront, name.substr(keyword ? kKeywordFront.size() : kInputFront.size())};
  return {{}, name};
}

std::string name_in_model(const dump::Side& side, const dump::Item& item) {
  return without_wrappers(module_path(side.text(side.apis[item.api].name))) + '.' +
         std::string(dump::split_last(side.name(item)).second);
}

}  // namespace msprobe::pairing
