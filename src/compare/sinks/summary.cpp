// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/sinks/advice.hpp"
#include "diagnosis/packets.hpp"
#include "dump/side.hpp"
#include "report/worst.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using pairing::MatchOptions;
using pairing::Pair;
using pairing::Rules;
using verdict::RankResult;
using verdict::Verdict;

/// The place of a metric among the metrics of the rows.
std::size_t find_metric(const Rows& rows, const std::string& name) {
  const std::vector<std::string> metrics = rows.metrics();
  const auto found = std::ranges::find_if(
      metrics, [&](const std::string& one) { return lower_case(one) == lower_case(name); });
  if (found != metrics.end()) return static_cast<std::size_t>(found - metrics.begin());
  if (metrics.empty()) {
    throw UsageError(rows.mode() == measuring::Mode::md5 ? "--by: checksum comparisons have no metrics"
                                                         : "--by: supported only for dumps with a dump.json");
  }
  throw UsageError(fmt::format("--by: '{}' is not a metric of a {} comparison: {}", display(name),
                               measuring::mode_name(rows.mode()), fmt::join(metrics, ", ")));
}

/// Orders by weight alone, if a metric was asked for.
bool weighs_more(const NotedRow& a, const NotedRow& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.index < b.index;
}

bool worse(const NotedRow& a, const NotedRow& b) {
  return a.verdict != b.verdict ? a.verdict > b.verdict : weighs_more(a, b);
}

/// Says why no tensor of a task was compared.
std::string why_none_measured(const TaskSummary& summary) {
  if (summary.rows == 0) return "the target has nothing to compare";
  if (summary.unknown > 0) return "no statistic is a number on both sides";
  if (summary.unreadable > 0) return "no tensor could be read on both sides";
  if (summary.unmatched > 0) return "no tensor of the target has a partner in golden";
  if (summary.mode == measuring::Mode::md5) return "no checksum was recorded on both sides";
  return "there is no tensor";
}

bool share_a_name(const dump::Side& target, const dump::Side& golden) {
  std::unordered_set<std::string_view> names;
  for (const dump::Api& api : golden.apis) names.insert(golden.text(api.name));
  return std::ranges::any_of(target.apis,
                             [&](const dump::Api& api) { return names.contains(target.text(api.name)); });
}

/// True if a row is paired by more than equal content.
bool is_paired_by_name(const RankResult& result) {
  return std::ranges::any_of(result.rows, [](const Pair& row) {
    return row.matched() && row.other_name != pairing::OtherName::content;
  });
}

/// Notes why the limits, or the diagnosis, could judge nothing in a rank.
void note_not_judged(const RankResult& result, TaskSummary& summary) {
  const bool by_name = is_paired_by_name(result);
  const bool by_content = !by_name && std::ranges::any_of(result.rows, &Pair::matched);
  std::string& limits = summary.not_judged_by_limits;
  const bool empty = result.target.apis.empty() || result.golden.apis.empty();
  if (empty) {
    limits = fmt::format("{} has no entries", result.target.apis.empty() ? "the target" : "golden");
  } else if (limits.empty() && by_content) {
    limits = "rows are paired by equal content alone, which shows no difference";
  } else if (limits.empty() && summary.errors == 0 && result.judgement.outputs_known > 0 &&
             result.judgement.outputs_judged == 0) {
    limits =
        "the limits judge an output where its inputs agree, and all inputs differ (--fail-on culprit judges)";
  }
  // Two parallel layouts are compared by the whole that their ranks make up.
  const bool merged = result.target_joins || result.golden_joins;
  if (!empty && !merged && !by_name && !share_a_name(result.target, result.golden)) {
    summary.not_judged = "the two sides have no name in common: " + limits;
  } else if (result.diagnosis && result.diagnosis->coverage.compared == 0) {
    summary.not_judged =
        summary.measured == 0 ? limits : "no value was recorded that the diagnosis can measure";
  }
}

/// Counts a row of a layout without entries.
void cover(const Rows& rows, std::size_t row, const RowFacts& facts, Coverage& coverage) {
  if (facts.measured) {
    ++coverage.compared;
  } else {
    coverage.miss(facts.unreadable                         ? "it could not be read or compared"
                  : facts.target_only || facts.golden_only ? "only one side has it"
                                                           : "no statistic is a number on both sides",
                  rows.note(row).name);
  }
}

using Order = bool (*)(const NotedRow&, const NotedRow&);

class Summaries final : public KeepingSink<std::optional<diagnosis::RankFindings>> {
 public:
  Summaries(const SummaryOptions& options, const MatchOptions& match, const Rules& rules)
      : options_(options), match_(match), rules_(rules) {}

  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& summary) override {
    summary = summarize(*rows, options_);
    const RankRows* entries = rows->of_entries();
    if (entries == nullptr) return;
    const RankResult& result = entries->result();
    note_not_judged(result, summary);
    summary.mapping_applies = result.mapping_applies;
    summary.advice = advise(result, match_);
    summary.no_values = result.target.header.task == "structure";
    if (!result.diagnosis) return;
    if (result.diagnosis->left_out > 0) {
      summary.entries = result.target.apis.size();
      summary.entries_left_out = result.diagnosis->left_out;
      summary.stopped_behind = result.target.text(result.target.apis[result.entries_reached - 1].name);
    }
    // Keeps the findings without those of each item, so that memory does not grow with the number of ranks.
    kept_[task] = *result.diagnosis;
    // The tables show these; the diagnosis also compares items that are no row.
    kept_[task]->counts = {};
    for (const Pair& row : result.rows) ++kept_[task]->counts[static_cast<std::size_t>(result.origin(row))];
  }

  void end(CompareReport& report) override {
    std::vector<diagnosis::RankFindings> ranks;
    for (std::optional<diagnosis::RankFindings>& rank : kept_) {
      if (rank) ranks.push_back(*std::move(rank));
    }
    if (!ranks.empty()) report.diagnosis = diagnosis::conclude(ranks, rules_.names_source);
  }

 private:
  SummaryOptions options_;
  MatchOptions match_;
  const Rules& rules_;
};

}  // namespace

TaskSummary summarize(const Rows& rows, const SummaryOptions& options) {
  TaskSummary summary;
  summary.mode = rows.mode();
  summary.rows = rows.rows();
  summary.golden_only = rows.golden_without_row();
  std::optional<std::size_t> metric;
  if (!options.by.empty()) {
    metric = find_metric(rows, options.by);
    summary.worst_by = rows.metrics()[*metric];
  }
  report::Worst<NotedRow, Order> worst(options.top, metric ? weighs_more : worse);
  const RankRows* entries = rows.of_entries();
  if (entries != nullptr) summary.coverage = entries->result().coverage;
  std::optional<std::size_t> first_error;
  std::optional<std::size_t> first_warning;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const RowFacts facts = rows.facts(i);
    if (facts.left_out) {
      ++summary.rows_left_out;
      continue;
    }
    summary.unmatched += facts.target_only ? 1 : 0;
    summary.golden_only += facts.golden_only ? 1 : 0;
    if (facts.unreadable && summary.unreadable++ == 0) summary.first_unreadable = rows.note(i);
    summary.measured += facts.measured ? 1 : 0;
    if (entries == nullptr) cover(rows, i, facts, summary.coverage);
    if (NotedRow noted; metric && rows.weigh(i, *metric, noted)) worst.add(std::move(noted));
    summary.unknown += facts.unknown && facts.verdict == Verdict::pass ? 1 : 0;
    if (facts.verdict == Verdict::pass) continue;
    const bool error = facts.verdict == Verdict::error;
    ++(error ? summary.errors : summary.warnings);
    std::optional<std::size_t>& first = error ? first_error : first_warning;
    if (!first) first = i;
    if (!metric) worst.add(rows.note(i));
  }
  if (first_error || first_warning)
    summary.first_bad = rows.note(first_error ? *first_error : *first_warning);
  summary.worst = worst.take();
  if (summary.measured == 0) summary.not_judged_by_limits = why_none_measured(summary);
  return summary;
}

std::unique_ptr<Sink> summary_sink(const SummaryOptions& options, const MatchOptions& match,
                                   const Rules& rules) {
  return std::make_unique<Summaries>(options, match, rules);
}

}  // namespace msprobe::compare
