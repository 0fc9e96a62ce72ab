// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

namespace msprobe::diagnosis {
namespace {

/// A learning rate that is computed may differ in its last digits.
constexpr double kSameSetting = 1e-9;

std::optional<double> number_in(const std::string& setting) {
  double value = 0;
  const char* const end = setting.data() + setting.size();
  const auto [stop, error] = std::from_chars(setting.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string shown_setting(const std::string& setting) {
  const auto number = number_in(setting);
  if (!number) return setting;
  const auto single = static_cast<float>(*number);  // some optimizers keep their settings in tensors
  return single == *number ? fmt::format("{}", single) : fmt::format("{:.10g}", *number);
}

bool is_same_setting(const std::string& ours, const std::string& theirs) {
  const auto a = number_in(ours);
  const auto b = number_in(theirs);
  if (ours == theirs) return true;
  if (!a || !b) return false;
  const auto is_single = [](double number) { return static_cast<float>(number) == number; };
  if (is_single(*a) || is_single(*b)) return static_cast<float>(*a) == static_cast<float>(*b);
  return std::abs(*a - *b) <= kSameSetting * std::max(std::abs(*a), std::abs(*b));
}

}  // namespace msprobe::diagnosis
