// SPDX-License-Identifier: Apache-2.0
// Judges one output by the results of two devices.
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

/// Measures of an output, each a value with its status, in the order of the result's columns.
enum class PrecisionMeasure : std::uint8_t {
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
inline constexpr std::size_t kMeasureCount = static_cast<std::size_t>(PrecisionMeasure::binary) + 1;

struct Judged {
  std::optional<double> value;
  PythonStatus status = PythonStatus::none;
};

/// One row of the details.
struct PairRow {
  std::string name;
  std::array<Judged, kMeasureCount> measures;
  std::optional<double> mean_ulp;
  std::optional<double> ulp_share;
  std::optional<double> ulp_ratio;
  PythonStatus ulp = PythonStatus::none;
  Judged thousandth;
  PythonStatus status = PythonStatus::none;
  std::string algorithm;  // the Python tool's name; several joined by " + "
  std::string message;    // in the Python tool's words
  std::string reason;     // msprobe's, one line, in English

  Judged& operator[](PrecisionMeasure measure) { return measures[static_cast<std::size_t>(measure)]; }
  const Judged& operator[](PrecisionMeasure measure) const {
    return measures[static_cast<std::size_t>(measure)];
  }
};

/// `Torch.linalg.inv.0.forward.output.1`.
struct OutputName {
  std::string_view api;        // "Torch.linalg.inv.0"
  std::string_view operation;  // "linalg.inv"
  CallDirection direction = CallDirection::forward;
};
/// Takes a name apart; nothing for names of another form.
std::optional<OutputName> parse_output_name(std::string_view name);

/// Whether no limits are known for the type.
bool is_unjudged_type(std::string_view dtype);

/// Judges a pair of rows, which must have the same name. `selection`: the release that chooses the criterion;
/// without it, the filled columns choose it.
PairRow judge_pair(const OutputName& name, const DetailsRow& device, const DetailsRow& other,
                   const Standards& standards, std::optional<Selection> selection);

}  // namespace msprobe::precheck
