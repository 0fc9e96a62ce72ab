// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/other_names.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "checkpoint/pieces.hpp"
#include "checkpoint/step_judge.hpp"

namespace msprobe::checkpoint {
namespace {

/// Some elements of a parameter, with their steps.
struct Head {
  std::vector<float> values;
  std::vector<float> steps;
};

class NearContents {
 public:
  NearContents(std::span<const Pairing::ParameterPair> pairs, std::vector<ParameterResult>& results)
      : pairs_(pairs), results_(results) {}

  void run() {
    std::map<Shape, std::vector<std::size_t>> shapes;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (is_open(i)) shapes[first(i).shape].push_back(i);
    }
    for (const auto& [shape, open] : shapes) relate(shape, open);
  }

 private:
  // A few numbers are near each other by chance.
  static constexpr std::int64_t kFewest = 256;

  const Parameter& first(std::size_t i) const { return pairs_[i].first.parameter; }
  const Parameter& second(std::size_t i) const { return pairs_[i].second.parameter; }

  bool is_open(std::size_t i) const {
    const ParameterResult& result = results_[i];
    return result.status == PairStatus::different && result.steps.tried && !result.relation.is_proved &&
           first(i).numel() >= kFewest;
  }

  void relate(const Shape& shape, const std::vector<std::size_t>& open) {
    std::map<std::size_t, Head> firsts;
    std::map<std::size_t, Head> seconds;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (!results_[i].compared || first(i).shape != shape || second(i).shape != shape) continue;
      const auto ours = head_of(first(i));
      const auto theirs = head_of(second(i));
      if (ours) firsts.emplace(i, *ours);
      if (theirs) seconds.emplace(i, *theirs);
    }
    std::map<std::size_t, std::size_t> sources;  // where the first has the content of the second
    for (const std::size_t i : open) {
      const auto own = seconds.find(i);
      if (own == seconds.end()) continue;
      check_interrupt();
      for (const auto& [other, head] : firsts) {
        if (other == i || !are_heads_near(head, own->second) || !are_near(first(other), second(i))) continue;
        sources.emplace(i, other);
        break;
      }
    }
    for (const auto& [i, other] : sources) {
      const auto back = sources.find(other);
      const bool exchanged = back != sources.end() && back->second == i;
      results_[i].relation.is_proved = true;
      results_[i].relation.text =
          exchanged ? exchanged_text(results_[other].name) : moved_text(results_[other].name);
    }
  }

  static std::optional<Head> head_of(const Parameter& parameter) {
    return if_readable([&]() -> std::optional<Head> {
      Parameter part = parameter;
      for (std::size_t axis = 0; axis + 1 < part.shape.size(); ++axis) {
        if (part.numel() > kFewest) part = narrow(part, axis, 0, 1);
      }
      const auto count = static_cast<std::size_t>(std::min(part.numel(), kFewest));
      tensor::ElementFeed<float, ParameterReader> feed(part);
      const std::span<const float> values = feed.next(count);
      StepFeed<float> feed_of_steps(part);
      const std::span<const float> steps = feed_of_steps.next(count);
      return Head{{values.begin(), values.end()}, {steps.begin(), steps.end()}};
    });
  }

  static bool are_heads_near(const Head& a, const Head& b) {
    if (a.values.size() != b.values.size()) return false;
    // Formats that search for scales leave some elements further away.
    std::size_t exceptions = a.values.size() / 10;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      if (!is_near(a.values[i], b.values[i], a.steps[i] + b.steps[i]) && exceptions-- == 0) return false;
    }
    return true;
  }

  static bool are_near(const Parameter& a, const Parameter& b) {
    return if_readable([&] { return check_steps(a, b).explains(); });
  }

  std::span<const Pairing::ParameterPair> pairs_;
  std::vector<ParameterResult>& results_;
};

constexpr std::size_t kMostTried = 8;      // candidates with one first row
constexpr std::int64_t kFewestEqual = 16;  // a few numbers are equal by chance

std::optional<std::uint64_t> hash_of_first_row(const Parameter& parameter) {
  return if_readable([&] { return std::optional(content_hash(narrow(parameter, 0, 0, 1))); });
}

bool is_copy(const Parameter& a, const Parameter& b) {
  return a.dtype == b.dtype && if_readable([&] {
           return measure(a, b, {.ulp = false, .counts = false, .on_bytes = {}}).unequal == 0;
         });
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

void relate_near_contents(std::span<const Pairing::ParameterPair> pairs,
                          std::vector<ParameterResult>& results) {
  NearContents(pairs, results).run();
}

}  // namespace msprobe::checkpoint
