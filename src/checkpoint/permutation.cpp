// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/permutation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace msprobe::checkpoint {
namespace {

using Places = std::span<const std::int64_t>;

/// True if each place holds what `expected(i)` gives.
template <typename Expected>
bool is_form(Places p, const Expected& expected) {
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] != expected(static_cast<std::int64_t>(i))) return false;
  }
  return true;
}

/// Divisors of n except n itself, the largest first.
std::vector<std::int64_t> divisors_of(std::int64_t n) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    if (d < n) divisors.push_back(d);
    if (d != 1 && d * d != n) divisors.push_back(n / d);
  }
  std::ranges::sort(divisors, std::greater{});
  return divisors;
}

/// The sizes that heads of n rows may have, the smallest first.
std::vector<std::int64_t> head_sizes(std::int64_t n) {
  std::vector<std::int64_t> sizes = divisors_of(n);
  sizes.insert(sizes.begin(), n);
  std::ranges::reverse(sizes);
  std::erase_if(sizes, [](std::int64_t d) { return d < 4 || d % 2 != 0; });
  return sizes;
}

/// The place in halves of row i of interleaved heads of size d, and the other way round.
std::int64_t in_halves(std::int64_t i, std::int64_t d) {
  return i - i % d + i % 2 * (d / 2) + i % d / 2;
}
std::int64_t in_pairs(std::int64_t i, std::int64_t d) {
  return i - i % d + i % (d / 2) * 2 + i % d / (d / 2);
}

/// Rotary embeddings keep the two parts of a pair side by side, or in the two halves of a head.
std::string rotary_form(Places p) {
  const auto n = static_cast<std::int64_t>(p.size());
  for (const std::int64_t d : head_sizes(n)) {
    const std::int64_t half = d / 2;
    const auto paired = [&](std::int64_t i) { return in_halves(i, d); };
    const auto halved = [&](std::int64_t i) { return in_pairs(i, d); };
    const auto exchanged = [&](std::int64_t i) { return i - i % d + (i % d + half) % d; };
    const auto reversed = [&](std::int64_t i) { return i - i % d + d - 1 - i % d; };
    if (is_form(p, paired)) return fmt::format("halves -> interleaved, {} per head", d);
    if (is_form(p, halved)) return fmt::format("interleaved -> halves, {} per head", d);
    if (d < n && is_form(p, exchanged)) return fmt::format("the halves of each {} exchanged", d);
    if (d < n && is_form(p, reversed)) return fmt::format("each {} reversed", d);
  }
  return {};
}

/// Rows were interleaved with one size of heads, and put back with another.
std::string wrong_heads_form(Places p) {
  const std::vector<std::int64_t> sizes = head_sizes(static_cast<std::int64_t>(p.size()));
  for (const std::int64_t d : sizes) {
    for (const std::int64_t other : sizes) {
      if (is_form(p, [&](std::int64_t i) { return in_halves(in_pairs(i, other), d); }))
        return fmt::format("interleaved with {} per head against {}", d, other);
      if (is_form(p, [&](std::int64_t i) { return in_pairs(in_halves(i, other), d); }))
        return fmt::format("in halves with {} per head against {}", d, other);
    }
  }
  return {};
}

/// Blocks stay together: heads, or the parts of a fused projection.
std::string block_form(Places p) {
  const auto n = static_cast<std::int64_t>(p.size());
  for (const std::int64_t d : divisors_of(n)) {
    if (d < 2) break;
    const auto stays = [&](std::int64_t i) { return p[static_cast<std::size_t>(i - i % d)] + i % d; };
    if (!is_form(p, stays)) continue;
    const std::int64_t blocks = n / d;
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t begin = p[static_cast<std::size_t>(i * d)];
      if (begin % d != 0) return {};
      order.push_back(begin / d);
    }
    if (blocks <= 4) return fmt::format("blocks of {} in the order {}", d, fmt::join(order, ", "));
    for (const std::int64_t groups : divisors_of(blocks)) {
      if (groups == 1) continue;
      const std::int64_t members = blocks / groups;
      const auto regrouped = [&](std::int64_t i) { return i % groups * members + i / groups; };
      if (is_form(order, regrouped)) return fmt::format("{} blocks of {} regrouped by {}", blocks, d, groups);
    }
    if (std::string form = wrong_heads_form(p); !form.empty()) return form;
    return fmt::format("blocks of {} in another order", d);
  }
  return wrong_heads_form(p);
}

}  // namespace

std::optional<std::vector<std::int64_t>> permutation_between(std::span<const std::uint64_t> first,
                                                             std::span<const std::uint64_t> second) {
  if (first.size() != second.size()) return {};
  const auto order_of = [](std::span<const std::uint64_t> values) {
    std::vector<std::int64_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
      return values[static_cast<std::size_t>(a)] < values[static_cast<std::size_t>(b)];
    });
    return order;
  };
  const std::vector<std::int64_t> a = order_of(first);
  const std::vector<std::int64_t> b = order_of(second);
  std::vector<std::int64_t> permutation(a.size());
  bool moves = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (first[static_cast<std::size_t>(a[i])] != second[static_cast<std::size_t>(b[i])]) return {};
    permutation[static_cast<std::size_t>(b[i])] = a[i];
    moves = moves || first[static_cast<std::size_t>(b[i])] != second[static_cast<std::size_t>(b[i])];
  }
  return moves ? std::optional(std::move(permutation)) : std::nullopt;
}

std::string permutation_form(Places p) {
  const auto n = static_cast<std::int64_t>(p.size());
  if (is_form(p, [&](std::int64_t i) { return n - 1 - i; })) return "reversed";
  const std::int64_t shift = p.empty() ? 0 : p[0];
  const bool rotated = is_form(p, [&](std::int64_t i) { return (i + shift) % n; });
  if (rotated && 2 * shift == n) return "the two halves exchanged";
  if (std::string form = rotary_form(p); !form.empty()) return form;
  if (rotated) return fmt::format("the first {} moved to the end", shift);
  if (std::string form = block_form(p); !form.empty()) return form;
  return "permuted";
}

std::string permutation_text(std::string_view lines, Places p) {
  const std::string form = permutation_form(p);
  return form == "permuted" || form == "reversed" ? fmt::format("{} {}", lines, form)
                                                  : fmt::format("{} permuted: {}", lines, form);
}

}  // namespace msprobe::checkpoint
