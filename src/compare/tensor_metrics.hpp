// SPDX-License-Identifier: Apache-2.0
// The six metrics of a pair of tensor files (spec/compare.md 8).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/stored_tensor.hpp"

namespace msprobe::compare {

/// Order of the metric columns.
enum Metric { kCosine, kEucDist, kMaxAbs, kMaxRelative, kOneThousandth, kFiveThousandths, kMetrics };

enum class MetricStatus : std::uint8_t {
  computed,
  unsupported,      // there is nothing to compute from: prints `unsupported`
  shape_unmatched,  // prints `shape unmatched`
  not_applicable,   // NaN or Inf at different positions: prints `N/A`
};

struct TensorMetrics {
  MetricStatus status = MetricStatus::unsupported;
  /// A 0-d tensor: only kMaxAbs and kMaxRelative are computed, the others print `unsupported`.
  bool is_scalar = false;
  std::array<double, kMetrics> value{};  // NaN prints `Nan`
  std::vector<std::string> messages;     // whole sentences
  /// The tensors could not be compared although there was data to compare: never a silent pass.
  bool failed = false;
};

/// Compares two stored tensors element by element; both are streamed. `python_rules` gives the numbers and
/// chains of the Python tool 26.x (real parts of complex numbers, 0-d arithmetic in the original type, signs
/// of infinities ignored). Throws FormatError or IoError if the files turn out to be broken while they are
/// read.
TensorMetrics compare_tensors(const formats::StoredTensor& target, const formats::StoredTensor& golden,
                              bool python_rules);

/// Twelve decimals as the Python tool rounds.
double round_12(double value);

}  // namespace msprobe::compare
