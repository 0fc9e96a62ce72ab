// SPDX-License-Identifier: Apache-2.0
// Finds where a single run goes wrong: numbers become NaN or infinite, or grow far beyond the usual size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace msprobe::monitor {

struct Outbreak {
  enum class OutbreakKind : std::uint8_t { number, growth };
  OutbreakKind kind = OutbreakKind::number;
  std::size_t at = 0;
  double value = 0;
  double usual = 0;  // the median of the steps before, of a long past the largest
};

/// The first place where a finite number is followed by none, or from where on the size stays above twice the
/// usual one by more than it fluctuates (the numbers are of one kind, such as norms), or above twice all of a
/// long past on its way to four times as much. Nothing for a healthy series, and for one without a finite
/// number.
std::optional<Outbreak> find_outbreak(std::span<const double> values);

}  // namespace msprobe::monitor
