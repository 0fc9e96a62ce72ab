// SPDX-License-Identifier: Apache-2.0
// How a weight is related to one that was rounded to the steps of a quantized format, or that an adapter was
// added to: elements are not equal there, but near each other. A relation is claimed only if each element is
// as near as the format allows.
#pragma once

#include <string>

#include "checkpoint/metrics.hpp"
#include "checkpoint/parameter.hpp"

namespace msprobe::checkpoint {

/// Returns "rows permuted: halves -> interleaved, 64 per head"; empty if no relation was found. Both have one
/// shape, or the second that of the first transposed, and one of them has steps. Reads both once, and once
/// more to prove a relation, permuted rows in bands of 64 MiB. `metrics` are those of the pair if the shapes
/// are the same. Throws FormatError or IoError if one cannot be read.
std::string find_near_relation(const Parameter& first, const Parameter& second, const PairMetrics& metrics);

}  // namespace msprobe::checkpoint
