// SPDX-License-Identifier: Apache-2.0
// The error that is not a fault at a place of golden (--noise-floor): the difference between golden and a
// third run of golden's code on other kernels, or the changes that free_benchmark saw when it made golden's
// calls again.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "dump/side.hpp"
#include "measuring/tensor_metrics.hpp"
#include "support/byte_source.hpp"

namespace msprobe::diagnosis {

/// A measured error that is not a fault.
struct Noise {
  double error = 0;   // error of the output when nothing but rounding changed
  double growth = 0;  // that error divided by the error of the inputs; 0: not known
  /// The largest change of a single element: errors up to that size may be noise. 0: not known; infinite: a
  /// sign or a NaN changed.
  double element = 0;
};

}  // namespace msprobe::diagnosis

namespace msprobe::diagnosis {

/// The file that the collector's task free_benchmark leaves in the folder of a rank.
inline constexpr std::string_view kUnstableCalls = "free_benchmark.csv";

class NoiseFloor {
 public:
  virtual ~NoiseFloor() = default;

  /// The noise of an output. Where that takes data files, it throws what their readers throw.
  virtual diagnosis::Noise operator()(std::uint32_t golden_item) const = 0;
};

/// Reads the noise floor from a third dump, or from a csv file of free_benchmark in its place. Throws what
/// the readers throw. `golden` must outlive it.
std::unique_ptr<NoiseFloor> noise_floor(const dump::RankDump& third, const dump::Side& golden,
                                        const measuring::PythonRules& python);

/// For tests and fuzzing.
std::unique_ptr<NoiseFloor> noise_of_unstable_calls(const ByteSource& csv, const dump::Side& golden);

}  // namespace msprobe::diagnosis
