// SPDX-License-Identifier: Apache-2.0
#include "dump/value.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>

#include "support/text.hpp"

namespace msprobe::dump {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool names_device(std::string_view text) {
  const std::string low = lower(text);
  return low.find("npu") != std::string::npos || low.find("cpu") != std::string::npos ||
         low.find("cuda") != std::string::npos;
}

Classified classify_number(double number) {
  Classified result;
  result.number = number;
  if (std::isnan(number)) {
    result.type = ValueClass::nan;
  } else if (std::isinf(number)) {
    result.type = number > 0 ? ValueClass::inf : ValueClass::neg_inf;
  } else {
    result.type = ValueClass::number;
  }
  return result;
}

}  // namespace

Value Value::missing() {
  Value value;
  value.kind = ValueKind::missing;
  return value;
}

Value Value::of(bool boolean) {
  Value value;
  value.kind = ValueKind::boolean;
  value.boolean = boolean;
  return value;
}

Value Value::of(std::int64_t integer) {
  Value value;
  value.kind = ValueKind::integer;
  value.integer = integer;
  return value;
}

Value Value::of(double real) {
  Value value;
  value.kind = ValueKind::real;
  value.real = real;
  return value;
}

Value Value::of_text(std::uint32_t id) {
  Value value;
  value.kind = ValueKind::text;
  value.text = id;
  return value;
}

void StatisticValues::set(std::size_t which, const Value& value) {
  kinds_[which] = value.kind;
  if (value.kind == ValueKind::text) {
    contents_[which] = {value.text, 0};
  } else if (value.kind == ValueKind::boolean) {
    contents_[which] = {value.boolean, 0};
  } else {
    contents_[which] = std::bit_cast<std::array<std::uint32_t, 2>>(value.integer);
  }
}

std::string to_text(const Value& value, const TextPool& pool) {
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
  return text.size() == 3 && lower(text) == "nan" ? "Nan" : std::string(text);
}

Classified classify(const Value& value, const TextPool& pool) {
  Classified result;
  switch (value.kind) {
    case ValueKind::missing:
      result.type = ValueClass::missing;
      return result;
    case ValueKind::none:
    case ValueKind::boolean:
      return result;
    case ValueKind::integer:
      result.type = ValueClass::number;
      result.number = static_cast<double>(value.integer);
      result.is_integer = true;
      result.integer = value.integer;
      return result;
    case ValueKind::real:
      return classify_number(value.real);
    case ValueKind::text:
      break;
  }
  const std::string_view text = pool.at(value.text);
  if (const auto number = parse_number(text)) return classify_number(*number);
  if (text == "N/A") {
    result.type = ValueClass::missing;
  } else if (names_device(text)) {
    result.type = ValueClass::device;
  }
  return result;
}

}  // namespace msprobe::dump
