// SPDX-License-Identifier: Apache-2.0
// The judgement of one output by what two devices made of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "precheck/judgement/output.hpp"
#include "precheck/precision_compare/input.hpp"
#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

/// What can be otherwise for the sake of the Python tool; the defaults are our way.
struct PrecisionTraits {
  /// Nothing: each row by the criterion whose columns are filled.
  std::optional<Selection> selection;
  bool blanks_are_zero = false;           // of the benchmark criterion of release 26
  bool balance_may_be_nonfinite = false;  // NaN or Inf of one side in it is shown only
  bool nonfinite_on_both_passes =
      false;  // NaN or Inf in the same figure of both sides, or a ratio beyond all numbers
  bool negative_is_absolute = false;  // which is no error's figure otherwise
  bool short_names = false;           // of six or seven parts; others are not judged
  bool stops_at_duplicate = false;    // of the other device
  bool leaves_out_missing = false;    // rows without a partner
  bool by_neighbours = false;         // operations end where the name changes, their last row's type decides
  bool python_columns = false;        // no columns of ours
  // Of a file.
  bool numeric_rates = false;   // no relative error rate is blank
  bool numeric_binary = false;  // the same of the share of unequal elements
};

/// Those of --python-rules.
PrecisionTraits python_precision_traits(Selection selection);

/// Pairs of a value and what is said of it, in the order of the result's columns.
enum class Measure : std::uint8_t {
  small_share,
  rmse,
  max_relative,
  mean_relative,
  balance,
  inf_nan_rate,
  relative_rate,
  absolute_rate,
  binary,
};
inline constexpr std::size_t kMeasureCount = static_cast<std::size_t>(Measure::binary) + 1;

struct Judged {
  std::optional<double> value;
  Status status = Status::none;
};

/// One row of the details.
struct PairRow {
  std::string name;
  std::array<Judged, kMeasureCount> measures;
  std::optional<double> mean_ulp;
  std::optional<double> ulp_share;
  std::optional<double> ulp_ratio;
  Status ulp = Status::none;
  Judged thousandth;
  std::string binary_text;  // in place of its number
  Status status = Status::none;
  std::string algorithm;  // as the Python tool calls it; several joined by " + "
  std::string message;    // the same
  std::string reason;     // ours, one line, in English
  bool broken = false;    // the figures could not be judged, by the Python tool's own words

  Judged& operator[](Measure measure) { return measures[static_cast<std::size_t>(measure)]; }
  const Judged& operator[](Measure measure) const { return measures[static_cast<std::size_t>(measure)]; }
};

/// `Torch.linalg.inv.0.forward.output.1`.
struct OutputName {
  std::string_view api;        // "Torch.linalg.inv.0"
  std::string_view operation;  // "linalg.inv"
  Direction direction = Direction::forward;
};
/// Nothing if it is none.
std::optional<OutputName> parse_output_name(std::string_view name, const PrecisionTraits& traits);

/// Is the type one that nothing is known of?
bool is_unjudged_type(std::string_view dtype);

/// Everything but the name, which must be that of both.
PairRow judge_pair(const OutputName& name, const DetailsRow& device, const DetailsRow& other,
                   const Standards& standards, const PrecisionTraits& traits);

}  // namespace msprobe::precheck
