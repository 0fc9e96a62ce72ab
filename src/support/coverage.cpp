// SPDX-License-Identifier: Apache-2.0
#include "support/coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/text.hpp"

namespace msprobe {
namespace {

/// A reader does not want more reasons at once.
constexpr std::size_t kShownReasons = 3;

}  // namespace

void Coverage::miss(std::string_view reason, std::string_view name, std::uint64_t count) {
  auto found = std::ranges::find(gaps, reason, &Gap::reason);
  if (found == gaps.end()) found = gaps.insert(gaps.end(), {std::string(reason), std::string(name), 0});
  found->count += count;
}

void Coverage::add(const Coverage& other) {
  compared += other.compared;
  explained += other.explained;
  for (const Gap& gap : other.gaps) miss(gap.reason, gap.first, gap.count);
}

std::uint64_t Coverage::missed() const {
  return std::accumulate(gaps.begin(), gaps.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Gap& gap) { return sum + gap.count; });
}

double Coverage::share() const {
  const std::uint64_t all = compared + missed();
  return all == 0 ? 0 : static_cast<double>(compared) / static_cast<double>(all);
}

std::string Coverage::percent() const {
  if (is_complete()) return "100 %";
  constexpr int kMostDigits = 9;  // for a share that is almost complete
  for (int digits = 0;; ++digits) {
    const double unit = std::pow(10, digits);
    const double rounded = std::floor(share() * 100 * unit) / unit;
    if (rounded < 100 && (rounded > 0 || compared == 0)) return fmt::format("{:.{}f} %", rounded, digits);
    if (digits == kMostDigits) return "a part";
  }
}

std::string Coverage::text(std::string_view unit) const {
  if (is_complete()) return {};
  if (asked() == 0) return fmt::format("there are no {} to compare", unit);
  if (gaps.empty())
    return fmt::format("none of {} {} was compared: there is nothing to compare in them",
                       human_count(asked()), unit);
  std::string text = compared == 0 && asked() > 1
                         ? fmt::format("none of {} {} was compared", human_count(asked()), unit)
                         : fmt::format("{} of {} {} {} not compared", human_count(missed()),
                                       human_count(asked()), unit, missed() == 1 ? "was" : "were");
  for (std::size_t i = 0; i < std::min(gaps.size(), kShownReasons); ++i) {
    const Gap& gap = gaps[i];
    text += i == 0 ? ": " : "; ";
    if (gaps.size() > 1) text += human_count(gap.count) + " because ";
    text += gap.reason;
    if (!gap.first.empty()) text += (gap.count > 1 ? ", first " : ", ") + display(gap.first);
  }
  if (gaps.size() > kShownReasons) text += fmt::format("; and {} other reasons", gaps.size() - kShownReasons);
  return text;
}

}  // namespace msprobe
