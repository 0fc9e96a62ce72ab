// SPDX-License-Identifier: Apache-2.0
#include "graph/data/node_tally.hpp"

#include <fmt/format.h>

#include "support/text.hpp"

namespace msprobe::graph {
namespace {

constexpr std::size_t kShownIntroduced = 5;

}  // namespace

void NodeTally::add_target(std::string_view place, std::string_view node, const NodeData& data) {
  if (node.starts_with(model_tree::kCollectionName)) return;  // the nodes inside are counted instead
  if (data.partner.empty()) {
    ++target_only_;
  } else if (!data.precision_index) {
    ++without_values_;
  } else if (*data.precision_index >= 1) {
    ++error_;
  } else if (*data.precision_index > 0) {
    ++warning_;
  } else {
    ++pass_;
  }
  if (data.finding.empty() || introduced_++ >= kShownIntroduced) return;
  const std::string rank = place.empty() ? "" : display(place) + ": ";
  introduced_lines_.push_back(
      fmt::format("introduced at {}{}: {}", rank, display(node), display(data.finding)));
}

void NodeTally::add_golden(std::string_view node, const NodeData& data) {
  if (!node.starts_with(model_tree::kCollectionName) && data.partner.empty()) ++golden_only_;
}

void NodeTally::add(const NodeTally& other) {
  error_ += other.error_;
  warning_ += other.warning_;
  pass_ += other.pass_;
  without_values_ += other.without_values_;
  target_only_ += other.target_only_;
  golden_only_ += other.golden_only_;
  introduced_ += other.introduced_;
  for (const std::string& line : other.introduced_lines_) {
    if (introduced_lines_.size() < kShownIntroduced) introduced_lines_.push_back(line);
  }
}

std::vector<std::string> NodeTally::lines() const {
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format("{} error, {} warning, {} pass, {} without values; unmatched: {} of the "
                  "target, {} of the golden dump",
                  human_count(error_), human_count(warning_), human_count(pass_),
                  human_count(without_values_), human_count(target_only_), human_count(golden_only_)));
  lines.insert(lines.end(), introduced_lines_.begin(), introduced_lines_.end());
  if (introduced_ > introduced_lines_.size())
    lines.push_back(
        fmt::format("introduced at {} more nodes", human_count(introduced_ - introduced_lines_.size())));
  return lines;
}

}  // namespace msprobe::graph
