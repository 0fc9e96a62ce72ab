// SPDX-License-Identifier: Apache-2.0
#include "graph/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "support/progress.hpp"
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

GraphJob::GraphJob(const GraphOptions& options, std::size_t parts, bool with_edges,
                   const GraphProgress& progress)
    : options_(options),
      progress_(progress),
      parts_(static_cast<double>(parts)),
      output_(options.as_vis ? vis_output(options) : database_output(options, with_edges)) {}

void GraphJob::write(const GraphPlace& place, const NodeSource& graph, double begins) {
  write(place, Sides{graph, nullptr, std::nullopt, graph.tree().micro_steps}, begins);
}

void GraphJob::write(const GraphPlace& place, const GraphPair& pair, double begins) {
  write(place, Sides{pair.target(), &pair.golden(), pair.task(), pair.micro_steps()}, begins);
  for (const std::string& warning : pair.warnings())
    result.warnings.push_back(place.label.empty() ? warning : display(place.label) + ": " + warning);
}

void GraphJob::write(const GraphPlace& place, const Sides& sides, double begins) {
  const double share = (1 - begins) / (sides.golden == nullptr ? 1 : 2);
  GraphFrame frame{sides.task, sides.micro_steps, {}};
  NodeTally tally;
  std::size_t nodes = 0;
  const auto add = [&](std::string_view side, const NodeSource& source) {
    const std::size_t size = source.tree().size() - 1;
    begin(place.label.empty() ? "graph" : display(place.label), size);
    RankCalls calls;
    const bool is_target = &source == &sides.target;
    const double before = is_target ? begins : begins + share;
    std::size_t so_far = 0;
    GraphObserver observer;
    observer.written = [&](std::size_t more) {
      so_far += more;
      if (progress_.line != nullptr) progress_.line->advance(more);
      tell(before + share * static_cast<double>(so_far) / static_cast<double>(size));
    };
    observer.node = [&](std::int64_t row, std::string_view node, const NodeData& data) {
      add_call(calls, row, node, data, options_.overflow_check);
      is_target ? tally.add_target(place.label, node, data) : tally.add_golden(node, data);
    };
    nodes += output_->add(side, source, observer);
    frame.calls.emplace_back(side, std::move(calls));
  };
  add("NPU", sides.target);
  if (sides.golden != nullptr) add("Bench", *sides.golden);
  output_->end(std::move(frame));
  if (sides.golden != nullptr) {
    if (!result.tally) result.tally.emplace();
    result.tally->add(tally);
    extent_.task = sides.task;
  }
  count(place, nodes, sides.micro_steps);
}

void GraphJob::count(const GraphPlace& place, std::size_t nodes, std::uint32_t micro_steps) {
  ++result.ranks;
  result.nodes += nodes;
  extent_.steps.insert(place.step);
  extent_.micro_steps = std::max(extent_.micro_steps, micro_steps);
  extent_.ranks.insert(place.rank);
}

void GraphJob::tell_unconnected(const RankGraph& graph) {
  for (const std::string& name : graph.built.unconnected) {
    result.unconnected.push_back(fmt::format("{}: {} is unconnected; it is placed below the root",
                                             display(graph.folder + "/construct.json"), display(name)));
  }
}

void GraphJob::begin(const std::string& what, std::size_t nodes) const {
  if (progress_.line != nullptr) progress_.line->begin(what, nodes, nodes == 0 ? "" : "nodes");
}

void GraphJob::tell(double part) const {
  if (progress_.tell) progress_.tell(100 * (done_ + part) / parts_);
}

GraphResult GraphJob::finish() {
  if (result.ranks > 0) result.file = output_->finish(extent_);
  if (progress_.line != nullptr) progress_.line->end();
  return std::move(result);
}

}  // namespace msprobe::graph
