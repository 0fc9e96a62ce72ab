// SPDX-License-Identifier: Apache-2.0
// Checks whether the outputs of an entry follow from its inputs: by the size of the error, by the norm, or
// computed again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/second_reading.hpp"
#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class OutputRule : WalkRule {
 public:
  explicit OutputRule(Walk& walk) : WalkRule(walk) {}

  void examine(EntryPair& entry);
  void examine_module(EntryPair& entry);
  /// Judges an output. `e` and `b`: its errors, or the part of them that counts; `sums`: the rounding that a
  /// sum collects while it is added up.
  void judge(EntryPair& entry, std::uint32_t item, double e, double b, const std::vector<Replayed>& replays,
             double sums = 0);

 private:
  /// The part of an input that statistics hide, and the entry that made the input.
  struct Unseen {
    std::string text;
    std::string_view maker;
  };
  bool is_square(const EntryPair& entry) const;
  double amplification(const EntryPair& entry) const;
  double error_of(const EntryPair& entry, std::uint32_t index) const;
  bool divides_unseen(const EntryPair& entry) const;
  double received(const EntryPair& entry, std::uint32_t item, double sums = 0) const;
  Noise noise_of(std::uint32_t item) const;
  std::vector<Replayed> replayed(const EntryPair& entry, double excess) const;
  std::string overflow_of(std::uint32_t item) const;
  std::string underflow_of(const EntryPair& entry, std::uint32_t item) const;
  std::string unordered_inputs(const EntryPair& entry) const;
  std::string integers_without_sums(const EntryPair& entry) const;
  double share_of_few(std::uint32_t item, double n) const;
  Unseen unseen_input(const EntryPair& entry) const;
  void checksum(EntryPair& entry);

  bool any_checksum_ = false;
  bool decided_ = false;  // a discrete operation took what differs, by statistics
};

}  // namespace msprobe::diagnosis
