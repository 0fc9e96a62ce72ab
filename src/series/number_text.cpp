// SPDX-License-Identifier: Apache-2.0
#include "series/number_text.hpp"

#include <cmath>

namespace msprobe::series {
namespace {

// Exact up to 10^22.
constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                              1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};

}  // namespace

double round_decimals(double value, int digits) {
  const double power = kPowers[digits];
  const double scaled = value * power;
  if (!std::isfinite(scaled)) return value;
  return std::nearbyint(scaled) / power;
}

void append_csv_field(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace msprobe::series
