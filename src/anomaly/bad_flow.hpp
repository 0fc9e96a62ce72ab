// SPDX-License-Identifier: Apache-2.0
// Which of the entries that made bad values of clean ones a bad value comes from, by what is in it: views
// keep Max, Min, Mean and Norm. An Inf that ends without making a NaN, while entries behind it are clean, is
// contained: -inf of a mask or of log(0) that softmax or a cast takes away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "anomaly/badness.hpp"
#include "dump/entry.hpp"

namespace msprobe::anomaly {

class BadFlow {
 public:
  /// An entry with a bad value; `is_suspect`: it is the next of those that made one of clean values and may
  /// be to blame.
  void add(const dump::Entry& entry, const EntryBadness& bad, bool is_suspect, std::uint32_t position);
  /// Is there an Inf that may yet be contained? Else only what makes bad values of clean ones needs to be
  /// added.
  bool follows() const;
  /// An entry that takes and gives clean values.
  void add_clean(std::uint32_t position) { last_clean_ = position; }
  /// Bad values whose origin is not known went on: they may come from any of the suspects so far.
  void add_unknown(std::uint32_t position, Bad bad);

  /// Once all entries were added: did the bad values of this suspect end, and harm nothing?
  bool is_contained(std::size_t suspect) const;

 private:
  /// What an entry made of clean values; those that have met or look alike are one.
  struct Chain {
    std::size_t joined = 0;  // itself, or another one that stands for it
    std::uint32_t last = 0;  // position of the last entry that has its values
    Bad bad = 0;
  };
  std::size_t find(std::size_t chain) const;
  std::size_t join(std::size_t a, std::size_t b);

  std::vector<Chain> chains_;
  std::vector<std::size_t> suspects_;                      // their chains
  std::unordered_map<std::uint64_t, std::size_t> makers_;  // by content
  std::uint32_t last_clean_ = 0;
};

}  // namespace msprobe::anomaly
