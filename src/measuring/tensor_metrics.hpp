// SPDX-License-Identifier: Apache-2.0
// The six metrics of a pair of tensor files (docs/rules.md, "Metrics of tensors").
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dump/side.hpp"
#include "formats/stored_tensor.hpp"
#include "measuring/measures.hpp"
#include "measuring/python_rules.hpp"

namespace msprobe::measuring {

/// Order of the metric columns.
enum Metric { kCosine, kEucDist, kMaxAbs, kMaxRelative, kOneThousandth, kFiveThousandths, kMetrics };

enum class MetricStatus : std::uint8_t {
  computed,
  unsupported,      // there is nothing to compute from: prints `unsupported`
  shape_unmatched,  // prints `shape unmatched`
  not_applicable,   // NaN or Inf at different positions: prints `N/A`
  left_out,         // not measured: prints `N/A`
};

struct TensorMetrics {
  MetricStatus status = MetricStatus::unsupported;
  /// A 0-d tensor: only kMaxAbs and kMaxRelative are computed, the others print `unsupported`.
  bool is_scalar = false;
  std::array<double, kMetrics> value{};     // NaN prints `Nan`
  measuring::Measure measure;               // of all elements, regardless of the status
  std::vector<std::string> messages;        // whole sentences; the reason for a failure is the last one
  std::vector<std::string> not_multiplied;  // factors that could not be applied, and why
  /// The tensors could not be compared although both have data; never a silent pass.
  bool failed = false;

  bool has(std::size_t metric) const {
    return status == MetricStatus::computed && (!is_scalar || metric == kMaxAbs || metric == kMaxRelative);
  }
};

/// Compares two stored tensors element by element; both are streamed. Throws FormatError or IoError if the
/// files turn out to be broken while they are read.
///
/// `valid_rows`: only the target's elements with a smaller first index count; the others are taken as 0,
/// because grouped kernels leave undefined values after the last group.
TensorMetrics compare_tensors(const formats::StoredTensor& target, const formats::StoredTensor& golden,
                              const PythonRules& python,
                              std::optional<std::int64_t> valid_rows = std::nullopt);

/// The message of a row that was compared in this way.
std::string behind_valid_length(std::int64_t rows);

/// The data file of an item that has one. Throws FormatError, IoError.
formats::StoredTensor open_data(const dump::Side& side, const dump::Item& item);

/// Sum of all elements of an integer or boolean tensor; FormatError for other types.
std::int64_t sum_of_integers(const formats::StoredTensor& tensor);

/// Rounds to twelve decimals as the Python tool does.
double round_12(double value);

}  // namespace msprobe::measuring
