// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "monitor/input/tracks.hpp"
#include "monitor/input/tree.hpp"
#include "monitor/trend/tags.hpp"
#include "monitor/trend/trend.hpp"
#include "monitor/trend/trend_database.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"

namespace msprobe::monitor {
namespace {

constexpr std::int64_t kMostMicroSteps = 1'000'000;  // of one step

constexpr std::array<std::string_view, 16> kTrendStatistics = {"norm",
                                                               "max",
                                                               "min",
                                                               "mean",
                                                               "nans",
                                                               "zeros",
                                                               "entropy",
                                                               "softmax_max",
                                                               "sr",
                                                               "kernel_norm",
                                                               "std_x",
                                                               "jacobian",
                                                               "proxy",
                                                               "token_similarity",
                                                               "router_weight_similarity",
                                                               "per_token_expert_entropy"};

// The Python tool knows the first nine.
constexpr std::array<std::string_view, 17> kTrendQuantities = {"actv",
                                                               "actv_grad",
                                                               "exp_avg",
                                                               "exp_avg_sq",
                                                               "grad_unreduced",
                                                               "grad_reduced",
                                                               "param_origin",
                                                               "param_updated",
                                                               "other",
                                                               "mg_direction",
                                                               "update",
                                                               "ratio",
                                                               "comm",
                                                               "attention_hook",
                                                               "linear_hook",
                                                               "moe_router_weight_hook",
                                                               "moe_router_logit_hook"};

template <typename Names>
std::optional<std::size_t> place_in(const Names& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

/// The content of the files, before a row is written.
struct Survey {
  std::map<std::size_t, std::set<std::size_t>> statistics;     // of the quantities, both by their place
  std::unordered_map<std::int64_t, std::int64_t> micro_steps;  // of the steps, how many

  void merge(const Survey& other) {
    for (const auto& [quantity, all] : other.statistics) statistics[quantity].insert(all.begin(), all.end());
    for (const auto& [step, count] : other.micro_steps) {
      std::int64_t& most = micro_steps[step];
      most = std::max(most, count);
    }
  }
};

class MonitorTrend {
 public:
  MonitorTrend(const TrendOptions& options, const MonitorTree& tree, TrendReport& report)
      : options_(options), report_(report) {
    for (const RankFolder& rank : tree.ranks) {
      for (const SeriesFile& file : rank.files) files_.push_back({rank.rank, &file});
    }
  }

  void run(Progress* progress) {
    if (progress != nullptr) progress->begin("reading", 2 * files_.size(), "files");
    survey(progress);
    if (survey_.statistics.empty() || !report_.problems.empty()) return;
    count_steps();
    create_directories(options_.output);
    TrendDatabase database(options_.output + "/monitor_data.trend.db", plan());
    for (const RankFile& file : files_) {
      write(file, database);
      if (progress != nullptr) progress->advance();
    }
    database.commit();
    report_.rows = database.rows();
    report_.file = options_.output + "/monitor_data.trend.db";
  }

 private:
  struct RankFile {
    std::int64_t rank;
    const SeriesFile* file;
  };

  /// The place of the quantity of a row that is taken.
  std::optional<std::size_t> quantity_of(const MonitorRow& row) const {
    const auto quantity = place_in(kTrendQuantities, row.quantity);
    if (!quantity || row.absent) return std::nullopt;
    if (row.micro_step && (*row.micro_step < 0 || *row.micro_step >= kMostMicroSteps)) return std::nullopt;
    return quantity;
  }

  Survey survey_of(const SeriesFile& file, FileNotes& notes) const {
    Survey found;
    const void* head = nullptr;
    std::vector<std::size_t> known;
    notes = visit_rows(file, [&](const std::vector<std::string>& statistics, const MonitorRow& row) {
      if (head != &statistics) {
        head = &statistics;
        known.clear();
        for (const std::string& name : statistics) {
          if (const auto place = place_in(kTrendStatistics, name)) known.push_back(*place);
        }
      }
      const auto quantity = quantity_of(row);
      if (!quantity) return;
      if (auto& all = found.statistics[*quantity]; all.empty()) all.insert(known.begin(), known.end());
      std::int64_t& count = found.micro_steps[row.step];
      count = std::max(count, row.micro_step.value_or(0) + 1);
    });
    return found;
  }

  void survey(Progress* progress) {
    std::vector<Survey> found(files_.size());
    std::vector<FileNotes> notes(files_.size());
    parallel_for(files_.size(), [&](std::size_t i) {
      found[i] = survey_of(*files_[i].file, notes[i]);
      if (progress != nullptr) progress->advance();
    });
    for (std::size_t i = 0; i < files_.size(); ++i) {
      survey_.merge(found[i]);
      if (!notes[i].warning.empty()) report_.warnings.push_back(std::move(notes[i].warning));
      if (!notes[i].problem.empty()) report_.problems.push_back(std::move(notes[i].problem));
    }
  }

  /// Each step begins after the micro steps of the earlier ones.
  void count_steps() {
    std::vector<std::int64_t> steps;
    for (const auto& [step, count] : survey_.micro_steps) steps.push_back(step);
    std::ranges::sort(steps);
    std::int64_t begin = 0;
    for (const std::int64_t step : steps) {
      begins_[step] = begin;
      begin += survey_.micro_steps[step];
    }
  }

  TrendPlan plan() {
    TrendPlan plan;
    plan.tags = series_tags;
    std::set<std::size_t> all;
    for (const auto& [quantity, statistics] : survey_.statistics) {
      metrics_[kTrendQuantities[quantity]] = plan.metrics.size();
      TrendMetric& metric = plan.metrics.emplace_back();
      metric.name = kTrendQuantities[quantity];
      for (const std::size_t each : statistics) metric.statistics.emplace_back(kTrendStatistics[each]);
      all.insert(statistics.begin(), statistics.end());
    }
    for (const std::size_t each : all) plan.statistics.emplace_back(kTrendStatistics[each]);
    statistics_ = plan.statistics;
    return plan;
  }

  void write(const RankFile& from, TrendDatabase& database) {
    const void* head = nullptr;
    std::vector<std::optional<std::size_t>> places;  // the database's column for each of the file's columns
    std::vector<double> values(statistics_.size());
    std::uint64_t given = 0;
    visit_rows(*from.file, [&](const std::vector<std::string>& statistics, const MonitorRow& row) {
      if (head != &statistics) {
        head = &statistics;
        places.clear();
        given = 0;
        for (const std::string& name : statistics) places.push_back(place_in(statistics_, name));
        for (const auto& place : places) given |= place ? std::uint64_t{1} << *place : 0;
        std::fill(values.begin(), values.end(), std::numeric_limits<double>::quiet_NaN());
      }
      if (!quantity_of(row)) return;
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i]) values[*places[i]] = row.values[i];
      }
      const std::string target = mapped_name(options_.mapping, row.name);
      TrendRow out;
      out.rank = from.rank;
      out.metric = metrics_.at(row.quantity);
      out.target = target;
      out.stage = row.stage.value_or(0);
      out.step = options_.micro_steps ? begins_.at(row.step) + row.micro_step.value_or(0) : row.step;
      out.micro_step = options_.micro_steps ? 0 : row.micro_step.value_or(0);
      out.values = values;
      out.given = given;
      database.add(out);
    });
  }

  const TrendOptions& options_;
  TrendReport& report_;
  std::vector<RankFile> files_;
  Survey survey_;
  std::unordered_map<std::int64_t, std::int64_t> begins_;
  std::map<std::string_view, std::size_t> metrics_;
  std::vector<std::string> statistics_;
};

}  // namespace

TrendReport trend_of_monitor(const TrendOptions& options, Progress* progress) {
  TrendReport report;
  MonitorTree tree;
  try {
    tree = find_tree(options.input);
  } catch (const FormatError&) {
    return report;
  }
  report.warnings = tree.warnings;
  MonitorTrend(options, tree, report).run(progress);
  if (progress != nullptr) progress->end();
  return report;
}

}  // namespace msprobe::monitor
