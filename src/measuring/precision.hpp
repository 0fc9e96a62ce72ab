// SPDX-License-Identifier: Apache-2.0
// How well the recorded statistics of two dumps are known, and so what a difference of theirs can say
// (docs/statistics.md). Max and Min are elements and exact as a rule; Mean and Norm are sums, which recorders
// compute in other types and orders.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dump/side.hpp"
#include "measuring/imports.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::measuring {

/// Differences up to these say nothing.
struct Tolerance {
  double extreme = 0;   // of Max and Min, in parts of them
  double norm = 0;      // in parts of the norm
  double mean = 0;      // in parts of the mean
  double sum = 0;       // and of itself, of norm and mean
  double mean_sum = 0;  // and of the root mean square, which a mean that cancels is a small part of
};

/// How one dump's statistics were computed, as far as the dump shows it.
struct RecordedSums {
  bool in_double = false;         // sums of floating types; else in float32, one element after the other
  bool half_as_bfloat16 = false;  // Mean and Norm of bfloat16 are rounded to it
  bool half_as_float16 = false;
  bool integers_in_float32 = false;  // also of float64: made float32 first
  bool integers_without_sums = false;
  int digits = 0;  // decimal digits that numbers were printed with; 0: all
};

class StatisticsPrecision {
 public:
  /// As each dump shows it alone.
  StatisticsPrecision(const dump::Side& target, const dump::Side& golden);
  /// And as parameters show it, which both runs have alike, if anything is. `golden_item`: partners, by item
  /// under test.
  StatisticsPrecision(const dump::Side& target, const dump::Side& golden,
                      const std::vector<std::uint32_t>& golden_item);

  /// Of two items of the dumps, or of other steps of theirs.
  Tolerance of(const dump::Side& target, const dump::Item& item, const dump::Side& golden,
               const dump::Item& partner) const;

  /// What these dumps cannot show, each a sentence; empty if all that is recorded is exact.
  std::vector<std::string> limits() const;

 private:
  static constexpr std::size_t kTypes = 3;     // bfloat16, float16, others
  static constexpr std::size_t kDecades = 12;  // of the number of elements
  /// By how much two records of one tensor differ in parts of its norm and its root mean square.
  struct Sample {
    float norm = 0;
    float mean = 0;
  };
  using Samples = std::array<std::array<std::vector<Sample>, kDecades>, kTypes>;
  struct Learnt {
    double norm = 0;
    double mean = 0;
    bool known = false;
    bool alike = false;  // both sides sum in one way: equal tensors have equal sums
  };
  using KnownType = std::optional<tensor::DType>;  // nothing for names of no type
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
