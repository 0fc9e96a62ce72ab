// SPDX-License-Identifier: Apache-2.0
// Estimates how precisely two dumps record their statistics, and so which differences are significant
// (docs/statistics.md). Max and Min are elements and usually exact; Mean and Norm are sums, which recorders
// compute in different types and orders.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dump/side.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::measuring {

/// Differences up to these limits are not significant. They add up.
struct Tolerance {
  double extreme = 0;   // of Max and Min, relative to them
  double norm = 0;      // relative to the norm
  double mean = 0;      // relative to the mean
  double sum = 0;       // absolute, for norm and mean
  double mean_sum = 0;  // relative to the root mean square: a mean that cancels is much smaller
};

/// How the recorder computed one dump's statistics, as far as the dump shows it.
struct RecordedSums {
  bool in_double = false;         // sums of floating types; else in float32, element by element
  bool half_as_bfloat16 = false;  // Mean and Norm of bfloat16 are rounded to it
  bool half_as_float16 = false;
  bool integers_in_float32 = false;  // also float64: converted to float32 first
  bool integers_without_sums = false;
  int digits = 0;  // decimal digits of the printed numbers; 0: all
};

class StatisticsPrecision {
 public:
  /// Estimates the precision from each dump alone.
  StatisticsPrecision(const dump::Side& target, const dump::Side& golden);
  /// Also learns from the parameters: if any tensors of the two runs are equal, some parameters are.
  /// `golden_item`: the partner of each item under test.
  StatisticsPrecision(const dump::Side& target, const dump::Side& golden,
                      const std::vector<std::uint32_t>& golden_item);

  /// The tolerance for two items of the dumps, or of other steps of the same runs.
  Tolerance of(const dump::Side& target, const dump::Item& item, const dump::Side& golden,
               const dump::Item& partner) const;

  /// One sentence for each kind of error that these dumps cannot show; empty if all statistics are exact.
  std::vector<std::string> limits() const;

 private:
  static constexpr std::size_t kTypes = 3;     // bfloat16, float16, others
  static constexpr std::size_t kDecades = 12;  // powers of ten of the number of elements
  /// The differences of two records of one tensor, relative to its norm and to its root mean square.
  struct Sample {
    float norm = 0;
    float mean = 0;
  };
  using Samples = std::array<std::array<std::vector<Sample>, kDecades>, kTypes>;
  struct Learnt {
    double norm = 0;
    double mean = 0;
    bool known = false;
    bool alike = false;  // both sides sum in the same way: equal tensors have equal sums
  };
  using KnownType = std::optional<tensor::DType>;  // nothing for unknown names
  static std::size_t type_of(KnownType dtype);
  static std::size_t decade_of(std::uint64_t elements);
  static void add(Samples& samples, const dump::Side& target, const dump::Item& item,
                  const dump::Side& golden, const dump::Item& partner);
  void learn(const Samples& samples);
  void lend();

  RecordedSums target_;
  RecordedSums golden_;
  bool exact_ = true;
  std::array<std::array<Learnt, kDecades>, kTypes> learnt_;
};

}  // namespace msprobe::measuring
