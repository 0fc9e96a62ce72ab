// SPDX-License-Identifier: Apache-2.0
#include "pairing/sequence.hpp"

#include <algorithm>

namespace msprobe::pairing {
namespace {

constexpr std::uint64_t kWorkAlways = std::uint64_t{1} << 24;
constexpr std::uint64_t kWorkPerElement = 64;
/// The most edits D of an exact search, whose trace takes 4 D^2 bytes.
constexpr std::size_t kMostEdits = 1024;
/// The most edits of one piece, where the search only looks for a good way.
constexpr std::size_t kEditsPerPiece = 48;
constexpr unsigned kMostDepth = 6;

}  // namespace

/// The elements of a range that both sides have.
struct SequenceAligner::Kept {
  std::vector<std::uint32_t> a;  // indices into the whole sequences
  std::vector<std::uint32_t> b;
  std::vector<SequenceMatch> unique;  // pairs of elements that occur once on both sides; in the order of a
};

/// A way through the grid of edits from one point on.
struct SequenceAligner::Way {
  std::size_t x0 = 0;
  std::size_t y0 = 0;
  std::size_t x = 0;  // where it ends
  std::size_t y = 0;
  bool complete = false;
  std::size_t edits = 0;
  std::int64_t diagonal = 0;                      // of its end, relative to its beginning
  std::vector<std::vector<std::uint32_t>> trace;  // furthest x - x0 for the diagonals -d, -d + 2, …, d
};

SequenceAligner::SequenceAligner(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b,
                                 std::uint32_t alphabet)
    : a_(a),
      b_(b),
      count_a_(alphabet),
      count_b_(alphabet),
      work_(kWorkAlways + kWorkPerElement * (a.size() + b.size())) {}

std::vector<SequenceMatch> SequenceAligner::align(const SequenceRange& range) {
  matches_.clear();
  align_range(range, 0);
  return std::move(matches_);
}

void SequenceAligner::align_range(SequenceRange range, unsigned depth) {
  while (range.a_first < range.a_last && range.b_first < range.b_last &&
         a_[range.a_first] == b_[range.b_first])
    matches_.push_back({range.a_first++, range.b_first++});
  std::uint32_t tail = 0;
  while (range.a_first < range.a_last && range.b_first < range.b_last &&
         a_[range.a_last - 1] == b_[range.b_last - 1]) {
    --range.a_last;
    --range.b_last;
    ++tail;
  }
  if (range.a_first < range.a_last && range.b_first < range.b_last) {
    const Kept kept = common(range);
    if (!kept.a.empty()) {
      const Way whole = search(kept, 0, 0, kMostEdits, true);
      if (whole.complete) {
        follow(whole, kept);
      } else if (depth == kMostDepth || !split_at_unique(kept, range, depth)) {
        for (std::size_t x = 0, y = 0; x < kept.a.size() && y < kept.b.size();) {
          const Way way = search(kept, x, y, kEditsPerPiece, false);
          follow(way, kept);
          x = way.x;
          y = way.y;
        }
      }
    }
  }
  for (std::uint32_t i = 0; i < tail; ++i) matches_.push_back({range.a_last + i, range.b_last + i});
}

SequenceAligner::Kept SequenceAligner::common(const SequenceRange& range) {
  Kept kept;
  for (std::uint32_t i = range.a_first; i < range.a_last; ++i) ++count_a_[a_[i]];
  for (std::uint32_t i = range.b_first; i < range.b_last; ++i) ++count_b_[b_[i]];
  std::vector<std::uint32_t> place_in_b;  // of unique elements, found through their count on the side of a
  for (std::uint32_t i = range.a_first; i < range.a_last; ++i) {
    if (count_b_[a_[i]] == 0) continue;
    kept.a.push_back(i);
    if (count_a_[a_[i]] == 1 && count_b_[a_[i]] == 1) kept.unique.push_back({i, 0});
  }
  for (std::uint32_t i = range.b_first; i < range.b_last; ++i) {
    if (count_a_[b_[i]] != 0) kept.b.push_back(i);
  }
  for (std::uint32_t i = range.a_first; i < range.a_last; ++i) count_a_[a_[i]] = 0;
  for (const std::uint32_t i : kept.b) {
    if (count_b_[b_[i]] == 1) count_a_[b_[i]] = i;
  }
  for (SequenceMatch& match : kept.unique) match.b = count_a_[a_[match.a]];
  for (const std::uint32_t i : kept.b) count_a_[b_[i]] = 0;
  for (std::uint32_t i = range.b_first; i < range.b_last; ++i) count_b_[b_[i]] = 0;
  return kept;
}

/// Splits the range into windows at the longest increasing subsequence of unique elements: those that have
/// one order on both sides.
bool SequenceAligner::split_at_unique(const Kept& kept, const SequenceRange& range, unsigned depth) {
  const std::vector<SequenceMatch>& unique = kept.unique;
  if (unique.empty()) return false;
  constexpr std::uint32_t kNothing = UINT32_MAX;
  std::vector<std::uint32_t> ends;  // by length of a run: the one that ends least
  std::vector<std::uint32_t> before(unique.size(), kNothing);
  for (std::uint32_t i = 0; i < unique.size(); ++i) {
    const auto at = std::lower_bound(ends.begin(), ends.end(), unique[i].b,
                                     [&](std::uint32_t end, std::uint32_t b) { return unique[end].b < b; });
    if (at != ends.begin()) before[i] = *(at - 1);
    if (at == ends.end()) {
      ends.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<SequenceMatch> anchors;
  for (std::uint32_t i = ends.back(); i != kNothing; i = before[i]) anchors.push_back(unique[i]);
  SequenceRange window = range;
  for (auto anchor = anchors.rbegin(); anchor != anchors.rend(); ++anchor) {
    window.a_last = anchor->a;
    window.b_last = anchor->b;
    align_range(window, depth + 1);
    matches_.push_back(*anchor);
    window.a_first = anchor->a + 1;
    window.b_first = anchor->b + 1;
  }
  window.a_last = range.a_last;
  window.b_last = range.b_last;
  align_range(window, depth + 1);
  return true;
}

/// Searches a way from (x0, y0) with at most `most` edits to the end, or else to the furthest point.
SequenceAligner::Way SequenceAligner::search(const Kept& kept, std::size_t x0, std::size_t y0,
                                             std::size_t most, bool limited) {
  Way way;
  way.x0 = x0;
  way.y0 = y0;
  const auto width = static_cast<std::int64_t>(kept.a.size() - x0);
  const auto height = static_cast<std::int64_t>(kept.b.size() - y0);
  std::int64_t furthest = -1;
  for (std::size_t d = 0; d <= most; ++d) {
    std::vector<std::uint32_t> reached(d + 1);
    const auto edits = static_cast<std::int64_t>(d);
    for (std::int64_t k = -edits; k <= edits; k += 2) {
      const auto slot = static_cast<std::size_t>((k + edits) / 2);
      std::int64_t x = 0;
      if (d > 0) {
        // Slots of the row before: slot - 1 is the diagonal below this one, slot the one above.
        const std::vector<std::uint32_t>& last = way.trace.back();
        const bool down = slot == 0 || (slot < d && last[slot - 1] < last[slot]);
        x = down ? last[slot] : std::int64_t{last[slot - 1]} + 1;
      }
      std::int64_t y = x - k;
      // A way beyond the grid stays where it is and is never the furthest.
      std::uint64_t steps = 1;
      while (x < width && y < height && y >= 0 &&
             a_[kept.a[x0 + static_cast<std::size_t>(x)]] == b_[kept.b[y0 + static_cast<std::size_t>(y)]]) {
        ++x;
        ++y;
        ++steps;
      }
      reached[slot] = static_cast<std::uint32_t>(std::max<std::int64_t>(x, 0));
      if (limited) work_ -= std::min(work_, steps);
      if (x > width || y > height || y < 0 || x + y <= furthest) continue;
      furthest = x + y;
      way.x = x0 + static_cast<std::size_t>(x);
      way.y = y0 + static_cast<std::size_t>(y);
      way.edits = d;
      way.diagonal = k;
      if (x < width || y < height) continue;
      way.complete = true;
      way.trace.push_back(std::move(reached));
      return way;
    }
    way.trace.push_back(std::move(reached));
    if (limited && work_ == 0) break;
  }
  return way;
}

/// Adds the matches of a way, which its trace gives from its end to its beginning.
void SequenceAligner::follow(const Way& way, const Kept& kept) {
  const std::size_t first = matches_.size();
  std::int64_t k = way.diagonal;
  auto x = static_cast<std::int64_t>(way.x - way.x0);
  for (std::size_t d = way.edits;; --d) {
    std::int64_t from = 0;
    std::int64_t before = k;
    if (d > 0) {
      const std::vector<std::uint32_t>& last = way.trace[d - 1];
      const auto slot = static_cast<std::size_t>((k + static_cast<std::int64_t>(d)) / 2);
      const bool down = slot == 0 || (slot < d && last[slot - 1] < last[slot]);
      from = down ? last[slot] : std::int64_t{last[slot - 1]} + 1;
      before = down ? k + 1 : k - 1;
    }
    for (; x > from; --x) {
      matches_.push_back({kept.a[way.x0 + static_cast<std::size_t>(x - 1)],
                          kept.b[way.y0 + static_cast<std::size_t>(x - 1 - k)]});
    }
    if (d == 0) break;
    const std::vector<std::uint32_t>& last = way.trace[d - 1];
    k = before;
    x = last[static_cast<std::size_t>((k + static_cast<std::int64_t>(d - 1)) / 2)];
  }
  std::reverse(matches_.begin() + static_cast<std::ptrdiff_t>(first), matches_.end());
}

}  // namespace msprobe::pairing
