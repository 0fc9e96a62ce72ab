// SPDX-License-Identifier: Apache-2.0
// Traces a bad value to the entry that made it from clean values, by its content: views keep Max, Min, Mean
// and Norm. An Inf is contained if it ends without making a NaN, and later entries are clean: for example
// -inf of a mask or of log(0), which softmax or a cast removes.
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
  /// Adds an entry with a bad value. `is_suspect`: the entry made the value from clean ones and is the next
  /// suspect.
  void add(const dump::Entry& entry, const EntryBadness& bad, bool is_suspect, std::uint32_t position);
  /// Is there an Inf that may still turn out to be contained? If not, the caller needs to add only entries
  /// that make bad values from clean ones.
  bool follows() const;
  /// Adds an entry whose inputs and outputs are clean.
  void add_clean(std::uint32_t position) { last_clean_ = position; }
  /// Adds bad values of unknown origin: they may come from any of the suspects so far.
  void add_unknown(std::uint32_t position, Bad bad);

  /// After all entries were added: did the bad values of this suspect end without harm?
  bool is_contained(std::size_t suspect) const;

 private:
  /// The bad values that one entry made from clean ones. Chains that meet, or have equal contents, are
  /// joined.
  struct BadChain {
    std::size_t joined = 0;  // its own index, or that of the chain that it was joined to
    std::uint32_t last = 0;  // position of the last entry that has its values
    Bad bad = 0;
  };
  std::size_t find(std::size_t chain) const;
  std::size_t join(std::size_t a, std::size_t b);

  std::vector<BadChain> chains_;
  std::vector<std::size_t> suspects_;                      // the chains of the suspects
  std::unordered_map<std::uint64_t, std::size_t> makers_;  // the chain of each content
  std::uint32_t last_clean_ = 0;
};

}  // namespace msprobe::anomaly
