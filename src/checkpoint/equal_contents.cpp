// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/other_names.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>

#include "support/error.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::size_t kMostTried = 8;      // candidates with one first row
constexpr std::int64_t kFewestEqual = 16;  // a few numbers are equal by chance

std::optional<std::uint64_t> hash_of_first_row(const Parameter& parameter) {
  try {
    return content_hash(narrow(parameter, 0, 0, 1));
  } catch (const Error&) {
    return {};  // the comparison reports that it cannot be read
  }
}

bool is_copy(const Parameter& a, const Parameter& b) {
  try {
    return a.dtype == b.dtype && measure(a, b, {.ulp = false, .counts = false, .on_bytes = {}}).unequal == 0;
  } catch (const Error&) {
    return false;
  }
}

void relate_side(std::span<const Pairing::ParameterPair> pairs, std::vector<ParameterResult>& results,
                 bool in_second) {
  const auto side = [&](std::size_t i) -> const Parameter& {
    return in_second ? pairs[i].second.parameter : pairs[i].first.parameter;
  };
  std::vector<std::size_t> different;
  std::set<Shape> shapes;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const ElementCounts& counts = in_second ? results[i].metrics.second : results[i].metrics.first;
    if (results[i].status != PairStatus::different || results[i].relation.is_proved ||
        side(i).numel() < kFewestEqual || counts.least == counts.most)
      continue;
    different.push_back(i);
    shapes.insert(side(i).shape);
  }
  // The first row distinguishes most of them.
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> equal;
  for (std::size_t i = 0; i < pairs.size() && !different.empty(); ++i) {
    if (severity_of(results[i].status) != report::Severity::none || !shapes.contains(side(i).shape)) continue;
    if (const auto hash = hash_of_first_row(side(i))) equal[*hash].push_back(i);
  }
  for (const std::size_t i : different) {
    const auto hash = hash_of_first_row(side(i));
    const auto found = hash ? equal.find(*hash) : equal.end();
    if (found == equal.end()) continue;
    const auto tried = std::span(found->second).first(std::min(found->second.size(), kMostTried));
    const auto same = std::ranges::find_if(
        tried, [&](std::size_t k) { return side(i).shape == side(k).shape && is_copy(side(i), side(k)); });
    if (same == tried.end()) continue;
    results[i].relation.is_proved = true;
    results[i].relation.text = same_text(results[*same].name, in_second);
  }
}

}  // namespace

void relate_to_equal(std::span<const Pairing::ParameterPair> pairs, std::vector<ParameterResult>& results) {
  for (const bool in_second : {true, false}) relate_side(pairs, results, in_second);
}

}  // namespace msprobe::checkpoint
