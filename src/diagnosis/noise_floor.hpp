// SPDX-License-Identifier: Apache-2.0
// What is no fault at a place of golden (--noise-floor): what a third run, of the golden code on other
// kernels, differs from golden by; or what free_benchmark found when it made golden's calls again.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "diagnosis/imports.hpp"
#include "measuring/tensor_metrics.hpp"
#include "pairing/side.hpp"
#include "support/byte_source.hpp"

namespace msprobe::diagnosis {

/// What is known not to be a fault.
struct Noise {
  double error = 0;   // of the output, although nothing but rounding changed
  double growth = 0;  // how much larger it was than that of the inputs; 0: not known
  /// By how much a single element changed: errors up to that may be of this kind. 0: not known; infinite: a
  /// sign or a NaN.
  double element = 0;
};

}  // namespace msprobe::diagnosis

namespace msprobe::diagnosis {

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
                                        const PythonRules& python);

/// For tests and fuzzing.
std::unique_ptr<NoiseFloor> noise_of_unstable_calls(const ByteSource& csv, const Side& golden);

}  // namespace msprobe::diagnosis
