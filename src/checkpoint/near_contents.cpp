// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/other_names.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "checkpoint/step_judge.hpp"
#include "support/error.hpp"

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
    try {
      Parameter part = parameter;
      for (std::size_t axis = 0; axis + 1 < part.shape.size(); ++axis) {
        if (part.numel() > kFewest) part = narrow(part, axis, 0, 1);
      }
      const auto count = static_cast<std::size_t>(std::min(part.numel(), kFewest));
      tensor::ElementFeed<float, ParameterReader> feed(part);
      const std::span<const float> values = feed.next(count);
      Head head{{values.begin(), values.end()}, {}};
      StepFeed<float> steps(part);
      const std::span<const float> some = steps.next(count);
      head.steps.assign(some.begin(), some.end());
      head.steps.resize(count);
      return head;
    } catch (const Error&) {
      return {};  // the comparison reports that it cannot be read
    }
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
    try {
      return check_steps(a, b).explains();
    } catch (const Error&) {
      return false;
    }
  }

  std::span<const Pairing::ParameterPair> pairs_;
  std::vector<ParameterResult>& results_;
};

}  // namespace

void relate_near_contents(std::span<const Pairing::ParameterPair> pairs,
                          std::vector<ParameterResult>& results) {
  NearContents(pairs, results).run();
}

}  // namespace msprobe::checkpoint
