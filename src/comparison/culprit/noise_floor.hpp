// SPDX-License-Identifier: Apache-2.0
// What is no fault at a place of golden (--noise-floor): what a third run, of the golden code on other
// kernels, differs from golden by; or what free_benchmark found when it made golden's calls again.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "comparison/metrics/tensor_metrics.hpp"
#include "comparison/side.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "support/byte_source.hpp"

namespace msprobe::compare {

/// The file that the collector's task free_benchmark leaves in the folder of a rank.
inline constexpr std::string_view kUnstableCalls = "free_benchmark.csv";

class NoiseFloor {
 public:
  virtual ~NoiseFloor() = default;

  /// Of an output. Where data files are read for it, throws what their readers throw.
  virtual diagnosis::Noise operator()(std::uint32_t golden_item) const = 0;
};

/// Of a third dump, or of a csv file of free_benchmark in its place. Throws what the readers throw. `golden`
/// must outlive it.
std::unique_ptr<NoiseFloor> noise_floor(const dump::RankDump& third, const Side& golden,
                                        const MeasureTraits& traits);

/// For tests and fuzzing.
std::unique_ptr<NoiseFloor> noise_of_unstable_calls(const ByteSource& csv, const Side& golden);

}  // namespace msprobe::compare
