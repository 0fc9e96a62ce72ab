// SPDX-License-Identifier: Apache-2.0
// Where two series of the same quantity part beyond what they fluctuate by themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace msprobe::monitor {

struct PartingRule {
  /// So many times its own fluctuation a difference may be.
  double tolerance = 8;
  /// What is beyond for fewer steps passes; one step in between may be within.
  std::size_t lasting = 5;
  /// What rounding does to numbers of this size, relative to them, and how finely they are written.
  double rounding = 1e-6;
  double resolution = 0;
  /// The numbers count elements that are NaN: none at all on one side alone is a parting.
  bool counts_nans = false;
};

enum class Verdict : std::uint8_t { identical, within, passing, parted };

/// Why a series counts as parted.
enum class Parting : std::uint8_t {
  none,
  number,  // one side is NaN or infinite, the other is not
  jump,    // the difference changes by more from one step to the next than the numbers themselves do
  shift,  // the difference moves beyond the fluctuation, and beyond all that it moved before, and stays there
  drift,  // the difference has grown beyond what the numbers go by themselves
  onset,  // equal until here, and now apart by a part of what the step changes; for a whole quantity at once
};

struct Course {
  Verdict verdict = Verdict::identical;
  Parting parting = Parting::none;
  std::size_t at = 0;             // where it parts, or passes for the first time
  double times = 0;               // the difference (of Parting::jump: its change) there / the fluctuation
  bool lasts = true;              // false: too near to the end to tell
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

/// Where a series stops being equal but for rounding, and at once by a part of what the step changes it.
struct Onset {
  std::size_t at = 0;
  double share = 0;  // the difference over the change from the number before; at the first one, to the next
  /// Equal to the last digit before, and apart by a tenth of itself from then on: no rounding does that.
  bool clear = false;
};
/// Nothing where they are equal throughout, or part slowly. Rounding may do the same to one series: unless it
/// is clear, several have to agree.
std::optional<Onset> onset(std::span<const double> a, std::span<const double> b, const PartingRule& rule);

/// How finely decimals are written: 1e-6 for 0.25, 0.123456, 1e-06; 0 where that cannot be told: integers, or
/// digits without end.
double resolution_of(std::span<const double> values);

}  // namespace msprobe::monitor
