// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "dump/dump_json.hpp"
#include "dump/names.hpp"
#include "dump/tree.hpp"
#include "monitor/trend/micro_steps.hpp"
#include "monitor/trend/tags.hpp"
#include "monitor/trend/trend.hpp"
#include "monitor/trend/trend_database.hpp"
#include "support/ascii.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/output_file.hpp"
#include "support/progress.hpp"

namespace msprobe::monitor {
namespace {

using dump::Direction;
using dump::Entry;
using dump::NodeKind;

enum DumpMetric : std::size_t { kForwardMetric, kBackwardMetric, kRecomputeMetric, kGradientMetric };
constexpr std::array<std::string_view, 4> kDumpMetrics = {"forward", "backward", "recompute",
                                                          "parameters_grad"};
constexpr std::array<std::string_view, 4> kDumpStatistics = {"norm", "max", "min", "mean"};
constexpr std::array<Entry::MemberKey, 4> kDumpKeys = {"Norm", "Max", "Min", "Mean"};
constexpr std::uint64_t kAllGiven = 15;

struct RankOfStep {
  std::int64_t rank = 0;
  std::string folder;
};

struct StepOfDump {
  std::int64_t step = 0;
  std::vector<RankOfStep> ranks;
};

bool has_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

/// Processes without a rank come after the ranks, in the order of their numbers.
std::vector<RankOfStep> ranks_of_step(const std::string& folder) {
  std::map<std::int64_t, std::string> ranks;
  std::map<std::int64_t, std::string> processes;
  for (const std::string& name : names_in(folder, WhichNames::folders)) {
    const std::string path = folder + "/" + name;
    if (!has_file(path + "/dump.json")) continue;
    if (const auto rank = dump::number_after(name, "rank")) ranks.emplace(*rank, path);
    if (const auto process = dump::number_after(name, "proc")) processes.emplace(*process, path);
  }
  std::vector<RankOfStep> found;
  for (auto& [rank, path] : ranks) found.push_back({rank, std::move(path)});
  std::int64_t next = found.empty() ? 0 : found.back().rank + 1;
  for (auto& [process, path] : processes) found.push_back({next++, std::move(path)});
  return found;
}

std::vector<StepOfDump> find_steps(const std::string& folder) {
  std::vector<StepOfDump> steps;
  for (const std::string& name : names_in(folder, WhichNames::folders)) {
    const auto number = dump::number_after(name, "step");
    if (!number) continue;
    StepOfDump step{*number, ranks_of_step(folder + "/" + name)};
    if (!step.ranks.empty()) steps.push_back(std::move(step));
  }
  std::ranges::stable_sort(steps, [](const StepOfDump& a, const StepOfDump& b) { return a.step < b.step; });
  return steps;
}

bool is_tensor(const Entry& entry, Entry::Index item) {
  if (!entry.is(item, NodeKind::object)) return false;
  const auto [type, dtype] = entry.find_all<2>(item, {"type", "dtype"});
  if (type == Entry::kNone || dtype == Entry::kNone) return false;
  const std::string_view kind = entry.is(type, NodeKind::string) ? entry.text(type) : std::string_view();
  if (kind != "torch.Tensor" && kind != "mindspore.Tensor" && kind != "mindtorch.Tensor") return false;
  std::string_view element = entry.is(dtype, NodeKind::string) ? entry.text(dtype) : std::string_view();
  if (element.starts_with("torch.")) element.remove_prefix(6);
  return element == "float16" || element == "float32" || element == "bfloat16";
}

class DumpTrend {
 public:
  DumpTrend(const TrendOptions& options, TrendReport& report) : options_(options), report_(report) {}

  void run(const std::vector<StepOfDump>& steps, Progress* progress) {
    create_directories(options_.output);
    const std::string path = options_.output + "/dump_data.trend.db";
    TrendDatabase database(path, plan());
    database_ = &database;
    if (progress != nullptr) progress->begin("reading", steps.size(), "steps");
    std::int64_t begin = 0;  // micro steps of the steps before
    for (const StepOfDump& step : steps) {
      std::int64_t most = 1;
      for (const RankOfStep& rank : step.ranks) most = std::max(most, add_rank(rank, step.step, begin));
      begin += most;
      if (progress != nullptr) progress->advance();
    }
    if (!report_.problems.empty()) return;  // the database would be incomplete
    database.commit();
    report_.rows = database.rows();
    report_.file = path;
  }

 private:
  static TrendPlan plan() {
    TrendPlan plan;
    plan.tags = dump_tags;
    plan.rank_first = true;
    plan.statistics.assign(kDumpStatistics.begin(), kDumpStatistics.end());
    for (const std::string_view name : kDumpMetrics)
      plan.metrics.push_back({std::string(name), plan.statistics});
    return plan;
  }

  /// How many micro steps the rank has in this step.
  std::int64_t add_rank(const RankOfStep& rank, std::int64_t step, std::int64_t begin) {
    std::optional<MicroSteps> micro_steps;
    try {
      if (options_.micro_steps) micro_steps.emplace(*open_file(rank.folder + "/construct.json"));
      row_.rank = rank.rank;
      const auto file = open_file(rank.folder + "/dump.json");
      dump::read_dump_json(*file, [&](std::string_view name, const Entry& entry) {
        row_.step = step;
        if (micro_steps) {
          const CallPlace place = micro_steps->place(name);
          row_.step = begin + place.micro_step;
          row_.micro_step = place.call;
        }
        add_entry(name, entry, micro_steps.has_value());
      });
    } catch (const Error& error) {
      report_.problems.emplace_back(error.what());
    }
    return micro_steps ? micro_steps->count() : 1;
  }

  void add_entry(std::string_view text, const Entry& entry, bool placed) {
    const auto name = dump::parse_entry_name(text);
    if (!name || !entry.is(0, NodeKind::object)) return;
    const bool gradient = name->direction == Direction::parameters_grad;
    if (!placed) row_.micro_step = whole_number<std::int64_t>(name->call).value_or(0);
    if (gradient) {
      row_.metric = kGradientMetric;
      add_named(entry, 0, std::string(name->base));
      return;
    }
    if (name->direction != Direction::forward && name->direction != Direction::backward) return;
    row_.metric = name->direction == Direction::backward ? kBackwardMetric : kForwardMetric;
    const auto [recompute, args, input, output, parameters] =
        entry.find_all<5>(0, {"is_recompute", "input_args", "input", "output", "parameters"});
    if (row_.metric == kForwardMetric && recompute != Entry::kNone && !entry.falsy(recompute))
      row_.metric = kRecomputeMetric;
    const std::string base(name->base);
    add_list(entry, args != Entry::kNone ? args : input, base + ".input");
    add_list(entry, output, base + ".output");
    if (parameters != Entry::kNone) add_named(entry, parameters, base + ".parameters");
  }

  void add_list(const Entry& entry, Entry::Index list, const std::string& start) {
    if (!entry.is(list, NodeKind::array)) return;
    std::size_t place = 0;
    entry.children(list,
                   [&](Entry::Index item) { add_item(entry, item, fmt::format("{}.{}", start, place++)); });
  }

  /// Values are objects, or lists of one as dumps had them once.
  void add_named(const Entry& entry, Entry::Index object, const std::string& start) {
    if (!entry.is(object, NodeKind::object)) return;
    entry.children(object, [&](Entry::Index item) {
      const std::string target = fmt::format("{}.{}", start, entry.key(item));
      bool first = true;
      if (!entry.is(item, NodeKind::array)) {
        add_item(entry, item, target);
        return;
      }
      entry.children(item, [&](Entry::Index inner) {
        if (std::exchange(first, false)) add_item(entry, inner, target);
      });
    });
  }

  void add_item(const Entry& entry, Entry::Index item, const std::string& target) {
    if (!is_tensor(entry, item)) return;
    const std::array<Entry::Index, 4> found = entry.find_all<4>(item, kDumpKeys);
    std::array<double, 4> values;
    for (std::size_t i = 0; i < found.size(); ++i) values[i] = value_of(entry, found[i]);
    const std::string mapped = mapped_name(options_.mapping, target);
    row_.target = mapped;
    row_.values = values;
    row_.given = kAllGiven;
    database_->add(row_);
  }

  static double value_of(const Entry& entry, Entry::Index node) {
    return entry.is_number(node) ? entry.number(node) : std::numeric_limits<double>::quiet_NaN();
  }

  const TrendOptions& options_;
  TrendReport& report_;
  TrendDatabase* database_ = nullptr;
  TrendRow row_;
};

}  // namespace

TrendReport trend_of_dump(const TrendOptions& options, Progress* progress) {
  TrendReport report;
  const std::vector<StepOfDump> steps = find_steps(options.input);
  if (steps.empty()) return report;
  DumpTrend(options, report).run(steps, progress);
  if (progress != nullptr) progress->end();
  return report;
}

}  // namespace msprobe::monitor
