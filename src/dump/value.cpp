// SPDX-License-Identifier: Apache-2.0
#include "dump/value.hpp"

#include <bit>
#include <cmath>

#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::dump {
namespace {

bool names_device(std::string_view text) {
  const std::string low = lower_case(text);
  return low.find("npu") != std::string::npos || low.find("cpu") != std::string::npos ||
         low.find("cuda") != std::string::npos;
}

Classified classify_number(double number) {
  const ValueClass type = std::isnan(number)    ? ValueClass::nan
                          : !std::isinf(number) ? ValueClass::number
                          : number > 0          ? ValueClass::inf
                                                : ValueClass::neg_inf;
  return {type, number};
}

}  // namespace

void StatisticValues::set(std::size_t which, const RecordedValue& value) {
  kinds_[which] = value.kind;
  if (value.kind == ValueKind::text) {
    contents_[which] = {value.text, 0};
  } else if (value.kind == ValueKind::boolean) {
    contents_[which] = {value.boolean, 0};
  } else {
    contents_[which] = std::bit_cast<std::array<std::uint32_t, 2>>(value.integer);
  }
}

std::string to_text(const RecordedValue& value, const TextPool& pool) {
  switch (value.kind) {
    case ValueKind::missing:
      return "N/A";
    case ValueKind::none:
      return "None";
    case ValueKind::boolean:
      return value.boolean ? "True" : "False";
    case ValueKind::integer:
      return std::to_string(value.integer);
    case ValueKind::real:
      return std::isnan(value.real) ? "Nan" : python_repr(value.real);
    case ValueKind::text:
      break;
  }
  const std::string_view text = pool.at(value.text);
  return text.size() == 3 && lower_case(text) == "nan" ? "Nan" : std::string(text);
}

Classified classify(const RecordedValue& value, const TextPool& pool) {
  switch (value.kind) {
    case ValueKind::missing:
      return {ValueClass::missing};
    case ValueKind::none:
    case ValueKind::boolean:
      return {};
    case ValueKind::integer:
      return {ValueClass::number, static_cast<double>(value.integer), true, value.integer};
    case ValueKind::real:
      return classify_number(value.real);
    case ValueKind::text:
      break;
  }
  const std::string_view text = pool.at(value.text);
  if (const auto number = parse_number(text)) return classify_number(*number);
  if (text == "N/A") return {ValueClass::missing};
  return {names_device(text) ? ValueClass::device : ValueClass::other};
}

}  // namespace msprobe::dump
