// SPDX-License-Identifier: Apache-2.0
// How two parameters that differ are related: the same rows in another order, transposed, scaled, rounded,
// never loaded. A relation is claimed only where it holds for every element.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/metrics.hpp"
#include "checkpoint/parameter.hpp"

namespace msprobe::checkpoint {

struct Relation {
  std::string text;        // "rows permuted: halves -> interleaved, 64 per head"; empty: none was found
  bool is_proved = false;  // one side is made of the other; else a guess: never loaded
  std::string
      place;  // without a relation: "only rows 3 to 6 differ", if that says more than the first element
  /// Hashes of all elements in their order, which find the same tensor under another name; 0: unknown.
  std::uint64_t first_content = 0;
  std::uint64_t second_content = 0;
};

/// A hash of all elements in their order, which distinguishes parameters of one type.
std::uint64_t content_hash(const Parameter& parameter);

/// Reads both once, and once more to prove a relation. `metrics` are those of the pair. Parameters of
/// different shapes are examined only if one is the other transposed. Throws FormatError or IoError if one
/// cannot be read.
Relation find_relation(const Parameter& first, const Parameter& second, const PairMetrics& metrics);

}  // namespace msprobe::checkpoint
