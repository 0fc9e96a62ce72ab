// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/culprit.hpp"

#include <vector>

#include "compare/dump_tree/rank_rows.hpp"

namespace msprobe::compare {
namespace {

class Culprit final : public Sink {
 public:
  explicit Culprit(const Rules& rules) : rules_(rules) {}

  void begin(const Plan& plan) override { found_.resize(plan.tasks.size()); }

  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& /*summary*/) override {
    if (rows->of_entries() == nullptr) return;
    // Without what it says of each item: memory does not grow with the number of ranks.
    if (const auto& diagnosis = rows->of_entries()->result().diagnosis)
      found_[task] = std::make_unique<diagnosis::RankFindings>(*diagnosis);
  }

  void end(CompareReport& report) override {
    std::vector<diagnosis::RankFindings> ranks;
    for (const std::unique_ptr<diagnosis::RankFindings>& rank : found_) {
      if (rank) ranks.push_back(std::move(*rank));
    }
    if (!ranks.empty()) report.diagnosis = diagnosis::conclude(ranks, rules_.names_source);
  }

 private:
  const Rules& rules_;
  std::vector<std::unique_ptr<diagnosis::RankFindings>> found_;
};

}  // namespace

std::unique_ptr<Sink> culprit_sink(const Rules& rules) {
  return std::make_unique<Culprit>(rules);
}

}  // namespace msprobe::compare
