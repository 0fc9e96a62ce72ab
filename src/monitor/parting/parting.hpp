// SPDX-License-Identifier: Apache-2.0
// Finds where two series of the same quantity part by more than their own fluctuation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace msprobe::monitor {

struct PartingRule {
  /// A difference may be this many times the series' own fluctuation.
  double tolerance = 8;
  /// A difference that is beyond the limit for fewer steps passes; one step in between may be within.
  std::size_t lasting = 5;
  /// The rounding error of numbers of this size, relative to them, and the step of the written decimals.
  double rounding = 1e-6;
  double resolution = 0;
  /// The numbers count NaN elements: a count of zero on only one side is a parting.
  bool counts_nans = false;
};

enum class PartingVerdict : std::uint8_t { identical, within, passing, parted };

/// Why a series counts as parted.
enum class Parting : std::uint8_t {
  none,
  number,  // one side is NaN or infinite, the other is not
  jump,    // the difference changes by more from one step to the next than the numbers themselves do
  shift,  // the difference moves beyond the fluctuation, and beyond all that it moved before, and stays there
  drift,  // the difference has grown beyond the distance that the numbers themselves move
  onset,  // equal so far, and now different by a part of the step's change; for a whole quantity at once
};

struct Course {
  PartingVerdict verdict = PartingVerdict::identical;
  Parting parting = Parting::none;
  std::size_t at = 0;             // where it parts, or passes for the first time
  double times = 0;               // the difference (of Parting::jump: its change) there / the fluctuation
  bool lasts = true;              // false: too close to the end to judge
  std::size_t unequal = 0;        // how many steps differ at all
  std::size_t first_unequal = 0;  // the first of them
  std::size_t not_finite = 0;     // steps at which neither side is a finite number
  double largest_relative = 0;    // |b - a| / max(|a|, |b|) over all finite steps
  double late_relative = 0;       // its median over the last quarter
};

/// `a` and `b` are the numbers of the steps that both runs have, in order. Numbers that are all of one sign
/// are judged by their logarithms, as norms fluctuate in proportion to their size.
Course judge(std::span<const double> a, std::span<const double> b, const PartingRule& rule);

/// Is the difference of two numbers one that rounding makes?
bool is_rounding(double a, double b, const PartingRule& rule);

/// The place where a series stops being equal (apart from rounding), and at once differs by a noticeable part
/// of the step's own change.
struct Onset {
  std::size_t at = 0;
  double share = 0;  // the difference over the change from the number before; at the first one, to the next
  /// Equal to the last digit before, and different by a tenth or more from then on: rounding never does that.
  bool clear = false;
};
/// Nothing if the series are equal throughout, or part slowly. Rounding can do the same to a single series,
/// so several must agree unless the onset is clear.
std::optional<Onset> onset(std::span<const double> a, std::span<const double> b, const PartingRule& rule);

/// The step of the written decimals: 1e-6 for 0.25, 0.123456, 1e-06. 0 if it is unknown: for integers, and
/// for doubles with all digits.
double resolution_of(std::span<const double> values);

}  // namespace msprobe::monitor
