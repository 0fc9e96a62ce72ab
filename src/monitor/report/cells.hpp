// SPDX-License-Identifier: Apache-2.0
// Numbers as the page of the report keeps them: 16 bits each, as fine as the series needs to look the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace msprobe::monitor {

/// value = unit * sinh(from + (code - kFirstNumber) * quantum). Lower codes do not mean numbers.
struct CellScale {
  static constexpr std::uint16_t kMissing = 0;
  static constexpr std::uint16_t kNan = 1;
  static constexpr std::uint16_t kInfinity = 2;
  static constexpr std::uint16_t kMinusInfinity = 3;
  static constexpr std::uint16_t kFirstNumber = 4;

  double unit = 1;
  double from = 0;
  double quantum = 1;
  double fluctuation = 0;  // from step to step, in units of asinh(value / unit)
};

/// Computes the scale for a row of one run, or for the rows of both, which are shown together. The quantum is
/// a small part of the fluctuation, or larger if the range requires it.
CellScale scale_of(std::span<const double> a, std::span<const double> b);

std::uint16_t cell_code(const CellScale& scale, double value);

/// Codes of rows, one after the other, as the page unpacks them: differences along each row, low bytes, then
/// high bytes; deflated.
std::string pack_codes(const std::vector<std::uint16_t>& codes, std::size_t columns);

}  // namespace msprobe::monitor
