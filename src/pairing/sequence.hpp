// SPDX-License-Identifier: Apache-2.0
// Pairs the elements of two sequences in order: finds a longest common subsequence where that is cheap, and a
// good one where it is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace msprobe::pairing {

struct SequenceMatch {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

/// Part of both sequences: [a_first, a_last) and [b_first, b_last).
struct SequenceRange {
  std::uint32_t a_first = 0;
  std::uint32_t a_last = 0;
  std::uint32_t b_first = 0;
  std::uint32_t b_last = 0;
};

/// Myers' O(ND) on the elements that both sides have. Where D grows, elements that occur once on both sides
/// cut the sequences into windows. If no such elements exist, the way that got furthest is taken piece by
/// piece. Time is linear in the lengths, with a constant that does not depend on the contents. Equal symbols
/// are equal elements; all are below `alphabet`.
class SequenceAligner {
 public:
  SequenceAligner(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b, std::uint32_t alphabet);

  /// Matches within the range, ascending on both sides.
  std::vector<SequenceMatch> align(const SequenceRange& range);

 private:
  struct Kept;
  struct Way;

  void align_range(SequenceRange range, unsigned depth);
  Kept common(const SequenceRange& range);
  bool split_at_unique(const Kept& kept, const SequenceRange& range, unsigned depth);
  Way search(const Kept& kept, std::size_t x, std::size_t y, std::size_t most, bool limited);
  void follow(const Way& way, const Kept& kept);

  std::span<const std::uint32_t> a_;
  std::span<const std::uint32_t> b_;
  std::vector<std::uint32_t> count_a_;  // of symbols in the range at hand; all 0 in between
  std::vector<std::uint32_t> count_b_;
  std::uint64_t work_ = 0;  // steps that may still be spent on exact searches
  std::vector<SequenceMatch> matches_;
};

}  // namespace msprobe::pairing
