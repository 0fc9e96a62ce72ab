// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/argument_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "dump/operations.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {

std::string argument_text(const dump::Side& side, std::string_view entry, std::string_view place) {
  constexpr std::string_view kInput = "input.";
  if (!place.starts_with(kInput)) return std::string(place);
  const std::string_view which = place.substr(kInput.size());
  const auto number = whole_number<std::size_t>(which);
  if (!number) return std::string(which.find('.') == std::string_view::npos ? which : place);
  const auto parsed = dump::parse_entry_name(entry);
  if (!parsed || side.header.is_mindspore()) return std::string(place);
  const std::vector<std::string_view> arguments = split(dump::arguments_of(parsed->base), " ");
  // A function that works in place has no argument for it.
  const bool in_place = dump::has_in_place_mark(parsed->operation());
  const auto end = std::ranges::find_if(arguments, [&](std::string_view each) {
    return each == "*" || each == "..." || each.find('|') != std::string_view::npos ||
           (in_place && each.starts_with("inplace"));
  });
  if (*number >= static_cast<std::size_t>(end - arguments.begin())) return std::string(place);
  const std::string_view name = arguments[*number].substr(0, arguments[*number].find_first_of("=@"));
  // The name of a second operand tells no more than its place.
  return name == "other" ? std::string(place) : fmt::format("{} ({})", name, place);
}

std::string name_in(const dump::EntryName& name, std::string_view direction) {
  std::string text(name.base);
  text.append(".").append(name.call_first ? name.call : direction);
  return text.append(".").append(name.call_first ? direction : name.call);
}

std::string call_of(const dump::EntryName& name) {
  return std::string(name.base).append(".").append(name.call);
}

std::string list_of(const std::vector<std::string>& names, std::size_t most) {
  const auto first = std::span(names).first(std::min(names.size(), most));
  const std::string text = fmt::format("{}", fmt::join(first, ", "));
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

}  // namespace msprobe::diagnosis
