// SPDX-License-Identifier: Apache-2.0
// How a weight is related to one that was rounded to the steps of a quantized format, or that an adapter was
// added to: no two elements are the same there, but near each other. A relation is claimed only where each
// element is as near as the format allows.
#pragma once

#include <string>

#include "checkpoint/metrics.hpp"
#include "checkpoint/parameter.hpp"

namespace msprobe::checkpoint {

/// "rows permuted: halves -> interleaved, 64 per head"; empty if none was found. Both have one shape, or that
/// of the other transposed, and one of them has steps. Reads them once, and once more where a relation is to
/// be proved, permuted rows in bands of 64 MiB. The metrics are those of the pair, where shapes are the same.
/// FormatError or IoError if one cannot be read.
std::string find_near_relation(const Parameter& first, const Parameter& second, const PairMetrics& metrics);

}  // namespace msprobe::checkpoint
