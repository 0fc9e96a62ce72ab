// SPDX-License-Identifier: Apache-2.0
#include "graph/vis/build_vis.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "graph/pair/rank_pair.hpp"
#include "graph/plan.hpp"
#include "graph/rank_graph.hpp"
#include "graph/rank_source.hpp"
#include "graph/vis/vis_file.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// A file that is written but for the communication of its nodes, within another one.
struct Draft {
  std::string path;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<std::pair<std::uint64_t, std::string>> gaps;  // what goes where, in the order of places
};

class VisRun {
 public:
  VisRun(const GraphOptions& options, bool whole_stacks, const GraphProgress& progress)
      : options_(options),
        whole_stacks_(whole_stacks),
        progress_(progress),
        plan_(make_plan(options.target, options.golden)),
        time_(fmt::format("{:%Y%m%d%H%M%S}", fmt::localtime(std::time(nullptr)))) {}

  GraphResult run() {
    create_directories(options_.output);
    result_.warnings = plan_.warnings;
    result_.problems = plan_.problems;
    for (auto begin = plan_.graphs.begin(); begin != plan_.graphs.end();) {
      const auto end = std::find_if(begin, plan_.graphs.end(),
                                    [&](const GraphPlace& place) { return place.step != begin->step; });
      write_step({begin, end});
      begin = end;
    }
    if (progress_.line != nullptr) progress_.line->end();
    if (result_.ranks > 1) result_.file += fmt::format(" and {} more", result_.ranks - 1);
    return std::move(result_);
  }

 private:
  bool compares() const { return !options_.golden.empty(); }

  /// A file for each rank. They wait for each other: who communicates with whom is known at last.
  void write_step(std::span<const GraphPlace> places) {
    if (places.size() == 1) {
      const std::string path = path_of(places[0]);
      OutputFile file(path);
      if (!write_or_note(places[0], path, file, nullptr)) return;
      file.commit();
      return;
    }
    // It never gets that name.
    OutputFile scratch(path_of(places[0]));
    std::map<std::int64_t, Draft> drafts;  // by rank
    Edges edges(options_.edges);
    for (const GraphPlace& place : places) {
      Draft draft{path_of(place), scratch.size(), 0, {}};
      if (!write_or_note(place, draft.path, scratch, &edges)) continue;
      draft.end = scratch.size();
      drafts.emplace(place.rank, std::move(draft));
    }
    edges.tell([&](std::int64_t rank, std::int64_t gap, const std::string& json) {
      drafts.at(rank).gaps.emplace_back(gap, communication_member(json, compares()));
    });
    for (auto& [rank, draft] : drafts) finish(draft, scratch);
  }

  std::string path_of(const GraphPlace& place) const {
    std::string label = place.label;
    std::replace(label.begin(), label.end(), '/', '_');
    const std::string stem = fmt::format("{}/{}_{}{}{}", options_.output, compares() ? "compare" : "build",
                                         label, label.empty() ? "" : "_", time_);
    std::string path = stem + ".vis";
    std::error_code ignored;
    for (int number = 1; std::filesystem::exists(path, ignored); ++number)
      path = fmt::format("{}_{}.vis", stem, number);
    return path;
  }

  /// False if the rank cannot be read; what was written of it counts for nothing.
  bool write_or_note(const GraphPlace& place, const std::string& path, OutputFile& out, Edges* edges) {
    VisWriter writer(out, compares(), whole_stacks_);
    try {
      compares() ? write_pair(place, writer, edges) : write_one(place, writer, edges);
    } catch (const Error& error) {
      if (writer.failed() || plan_.graphs.size() == 1) throw;
      result_.problems.emplace_back(error.what());
      return false;
    }
    ++done_;
    if (result_.ranks++ == 0) result_.file = path;
    return true;
  }

  void write_one(const GraphPlace& place, VisWriter& writer, Edges* edges) {
    const RankGraph graph = read_rank_graph(place.target, options_.tree);
    const RankSource source(graph, options_.data, options_.overflow_check);
    RankCalls calls = no_calls();
    writer.add(source, graph.header.data_directory, observer(place, 0, calls, nullptr, source));
    writer.end({std::nullopt, graph.built.tree.micro_steps, options_.overflow_check});
    if (edges != nullptr) edges->add("NPU", place.step, place.rank, std::move(calls));
    result_.nodes += graph.built.tree.size() - 1;
    tell_unconnected(graph);
  }

  void write_pair(const GraphPlace& place, VisWriter& writer, Edges* edges) {
    const RankPair pair(place.target, place.golden,
                        {options_.overflow_check, options_.tree, options_.data, options_.pair},
                        options_.origins ? &histories_[place.rank] : nullptr);
    NodeTally tally;
    std::array<RankCalls, 2> calls = {no_calls(), no_calls()};
    writer.add(pair.target(), pair.target_graph().header.data_directory,
               observer(place, 0, calls[0], &tally, pair.target()));
    writer.add(pair.golden(), pair.golden_graph().header.data_directory,
               observer(place, 1, calls[1], &tally, pair.golden()));
    writer.end({pair.task(), pair.micro_steps(), options_.overflow_check});
    if (edges != nullptr) {
      edges->add("NPU", place.step, place.rank, std::move(calls[0]));
      edges->add("Bench", place.step, place.rank, std::move(calls[1]));
    }
    result_.nodes += pair.target().tree().size() + pair.golden().tree().size() - 2;
    if (!result_.tally) result_.tally.emplace();
    result_.tally->add(tally);
    for (const std::string& warning : pair.warnings())
      result_.warnings.push_back(place.label.empty() ? warning : display(place.label) + ": " + warning);
    tell_unconnected(pair.target_graph());
    tell_unconnected(pair.golden_graph());
  }

  RankCalls no_calls() const { return RankCalls(options_.overflow_check, options_.edges.as_release8); }

  /// `side` 0 is under test.
  GraphObserver observer(const GraphPlace& place, int side, RankCalls& calls, NodeTally* tally,
                         const NodeSource& source) const {
    const std::size_t nodes = source.tree().size() - 1;
    if (progress_.line != nullptr)
      progress_.line->begin(place.label.empty() ? "graph" : display(place.label), nodes, "nodes");
    GraphObserver observer;
    observer.written = [this, side, nodes, so_far = std::size_t{0}](std::size_t more) mutable {
      so_far += more;
      if (progress_.line != nullptr) progress_.line->advance(more);
      if (progress_.tell) tell(side + static_cast<double>(so_far) / static_cast<double>(nodes));
    };
    observer.node = [&place, side, &calls, tally](std::int64_t gap, std::string_view node,
                                                  const NodeData& data) {
      calls.add(gap, node, data);
      if (tally == nullptr) return;
      side == 0 ? tally->add_target(place.label, node, data) : tally->add_golden(node, data);
    };
    return observer;
  }

  /// `sides`: of the graph that is being written.
  void tell(double sides) const {
    const double done = static_cast<double>(done_) + sides / (compares() ? 2 : 1);
    progress_.tell(100 * done / static_cast<double>(plan_.graphs.size()));
  }

  /// Copies a draft to its place, with what goes between.
  void finish(Draft& draft, OutputFile& scratch) const {
    std::sort(draft.gaps.begin(), draft.gaps.end());
    OutputFile file(draft.path);
    std::uint64_t at = draft.begin;
    for (const auto& [gap, member] : draft.gaps) {
      copy(scratch, at, gap, file);
      file.write(member);
      at = gap;
    }
    copy(scratch, at, draft.end, file);
    file.commit();
  }

  static void copy(OutputFile& from, std::uint64_t begin, std::uint64_t end, OutputFile& to) {
    constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 20;
    std::string bytes;
    for (; begin < end; begin += bytes.size()) {
      bytes.resize(std::min(kAtOnce, end - begin));
      from.read_at(begin, bytes);
      to.write(bytes);
    }
  }

  void tell_unconnected(const RankGraph& graph) {
    if (options_.tree.lose_unconnected) return;
    std::vector<std::string> lines = unconnected_lines(graph);
    std::move(lines.begin(), lines.end(), std::back_inserter(result_.unconnected));
  }

  const GraphOptions& options_;
  bool whole_stacks_;
  const GraphProgress& progress_;
  Plan plan_;
  std::string time_;
  GraphResult result_;
  std::size_t done_ = 0;                                      // graphs
  std::map<std::int64_t, diagnosis::RankHistory> histories_;  // of the ranks, step by step
};

}  // namespace

GraphResult build_vis(const GraphOptions& options, bool whole_stacks, const GraphProgress& progress) {
  return VisRun(options, whole_stacks, progress).run();
}

}  // namespace msprobe::graph
