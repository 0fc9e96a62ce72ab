// SPDX-License-Identifier: Apache-2.0
#include "compare/first_difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/analysis/packets.hpp"
#include "compare/sinks/judgement.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "dump/tree_everywhere.hpp"
#include "formats/element_values.hpp"
#include "measuring/sum_precision.hpp"
#include "measuring/tensor_metrics.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/json_writer.hpp"
#include "support/log.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/result_name.hpp"
#include "support/team.hpp"
#include "support/text.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::compare {

using pairing::Rules;

void carry(auto& packet, Carried<AnalyzedRank> auto& rank) {
  packet(rank.differences, rank.failure, rank.file);
}

namespace {

constexpr std::size_t kMostPlaces = 8;  // shown with their details

/// Texts by phase.
constexpr std::array<std::string_view, 4> kPhases = {
    "", "before any communication", "between calls of communication", "after the last communication"};

std::string rank_name(const RankDifferences& rank) {
  return rank.label.empty() ? "rank " + std::to_string(rank.number) : display(rank.label);
}

void render_place(std::string& out, const AnalyzedStep& step, const FirstDifference::DifferencePlace& place,
                  bool color) {
  const RankDifferences& rank = step.ranks[step.searched[place.rank]].differences;
  const std::string name = report::paint(display(place.entry->name), report::Color::red, color);
  const std::string where(place.communication ? "in communication itself"
                                              : kPhases[static_cast<std::size_t>(step.first.phase)]);
  out += fmt::format("  first difference: {}: {}, {}\n", rank_name(rank), name, where);
  out += "    " + display(place.entry->what) + "\n";
  if (!place.entry->at.empty()) out += "    at " + display(place.entry->at) + "\n";
}

std::string folder_of(const CompareOptions& options, const std::string& step) {
  return step.empty() ? options.outputs.directory : options.outputs.directory + "/" + step;
}

std::string nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// `rank` without a number is rank 0, and so is a folder with another name.
std::int64_t number_of(const RankPair& pair) {
  return std::max<std::int64_t>(pair.target.number.value_or(0), 0);
}

/// Statistics as recorders write them: a NaN hides all other values.
std::optional<dump::StatisticValues> statistics_in(const dump::Side& side, const dump::Item& item) {
  const formats::StoredTensor tensor = measuring::open_data(side, item);
  if (tensor::info(tensor.dtype).kind != tensor::DTypeKind::floating) return std::nullopt;
  const tensor::Statistics found = formats::statistics_of(tensor);
  if (found.count == 0) return std::nullopt;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  dump::StatisticValues values;
  values.set(dump::kMax, dump::RecordedValue::of(found.nan > 0 ? nan : found.max));
  values.set(dump::kMin, dump::RecordedValue::of(found.nan > 0 ? nan : found.min));
  values.set(dump::kMean, dump::RecordedValue::of(found.mean()));
  values.set(dump::kNorm, dump::RecordedValue::of(found.norm()));
  return values;
}

struct Read {
  std::optional<dump::StatisticValues> target;
  std::optional<dump::StatisticValues> golden;
  std::string failure;
};

bool differs(const verdict::RankResult& result, const pairing::Pair& row) {
  for (std::size_t i = 0; i < dump::kStatistics; ++i) {
    if (result.difference(row, i).kind != measuring::DifferenceKind::zero) return true;
  }
  return false;
}

/// Replaces differing recorded statistics of floating tensors that have files on both sides by statistics of
/// the files, which are summed in one way. Tensors that cannot be read keep the recorded statistics, and a
/// warning says how many they are.
void take_file_statistics(verdict::RankResult& result) {
  std::vector<const pairing::Pair*> rows;
  for (const pairing::Pair& row : result.rows) {
    if (row.matched() && result.target_item(row).data_name != 0 && result.golden_item(row).data_name != 0 &&
        differs(result, row))
      rows.push_back(&row);
  }
  std::vector<Read> read(rows.size());
  parallel_for(rows.size(), [&](std::size_t i) {
    try {
      read[i].target = statistics_in(result.target, result.target_item(*rows[i]));
      if (read[i].target) read[i].golden = statistics_in(result.golden, result.golden_item(*rows[i]));
    } catch (const Error& error) {
      read[i] = {std::nullopt, std::nullopt, error.what()};
    }
  });
  std::size_t failed = 0;
  std::string first;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (read[i].target && read[i].golden) {
      result.target.items[rows[i]->target].statistics = *read[i].target;
      result.golden.items[rows[i]->golden].statistics = *read[i].golden;
    } else if (!read[i].failure.empty() && failed++ == 0) {
      first = read[i].failure;
    }
  }
  if (failed == 0) return;
  log_warning(fmt::format("{}using the recorded statistics of {} tensor{} whose files cannot be read: {}{}",
                          result.rank.empty() ? "" : display(result.rank) + ": ", failed,
                          failed == 1 ? "" : "s", first, failed == 1 ? "" : ", …"));
}

AnalyzedRank analyze_rank(const RankPair& pair, const CompareOptions& options, const Rules& rules,
                          const std::string& time, measuring::BytesAhead& bytes) {
  AnalyzedRank rank;
  verdict::RankResult result = compare_ranks(pair, options.rank, options.python, rules, bytes);
  if (result.mode == measuring::Mode::statistics) {
    take_file_statistics(result);
    measuring::learn_precision(result);
  }
  OutputFile file(folder_of(options, pair.step) + "/compare_result_" + pair.target.label + "_" + time +
                  ".json");
  rank.differences =
      find_differences(result, number_of(pair), rules, [&](std::string_view part) { file.write(part); });
  check_interrupt();
  file.commit();
  rank.file = file.path();
  return rank;
}

void search_step(AnalyzedStep& step, const CompareOptions& options, const Rules& rules) {
  std::vector<RankDifferences> ranks;
  for (std::size_t i = 0; i < step.ranks.size(); ++i) {
    if (!step.ranks[i].failure.empty()) continue;
    step.searched.push_back(i);
    ranks.push_back(std::move(step.ranks[i].differences));
  }
  step.first = search_first_difference(ranks, rules);
  // The places point into the ranks' differences, which move together with them.
  for (std::size_t i = 0; i < ranks.size(); ++i)
    step.ranks[step.searched[i]].differences = std::move(ranks[i]);
  if (step.first.places.empty()) return;
  OutputFile file(folder_of(options, step.label) + "/diff_analyze_" + nanoseconds() + ".json");
  file.write(difference_json(step));
  file.commit();
  step.file = file.path();
}

}  // namespace

bool is_single_pair(const CompareOptions& options) {
  if (options.inputs.local) return false;
  const dump::TreeKind kind = dump::discover(options.inputs.target).kind;
  return kind == dump::TreeKind::file || kind == dump::TreeKind::rank;
}

DifferenceReport find_first_difference(const CompareOptions& asked, Progress* progress) {
  CompareOptions options = asked;
  options.rank.first_difference = true;
  pairing::load_mapping(options.rank.match);
  const Rules rules =
      options.rules_file.empty() ? pairing::default_rules() : pairing::load_rules(options.rules_file);
  const auto discover = [&](const std::string& path) {
    return options.inputs.local ? dump::discover_everywhere(path, dump::RankNames::exact, false)
                                : dump::discover(path);
  };
  const dump::Tree target = discover(options.inputs.target);
  const RankPairs plan = pair_ranks(target, discover(options.inputs.golden));
  for (const std::string& remark : plan.remarks) log_warning(remark);
  DifferenceReport report;
  report.one_sided = plan.one_sided;
  report.mapping_file = options.rank.match.mapping_file;
  const std::string time = result_time(options.outputs.directory);
  if (team().computes()) {
    create_directories(options.outputs.directory);
    check_output(options.outputs.directory + "/diff_analyze_" + time);
  }
  for (const RankPair& pair : plan.pairs) {
    if (report.steps.empty() || report.steps.back().label != pair.step) {
      report.steps.emplace_back().label = pair.step;
      if (team().computes()) create_directories(folder_of(options, pair.step));
    }
    report.steps.back().ranks.emplace_back();
  }
  std::vector<AnalyzedRank*> slots;  // by pair
  for (AnalyzedStep& step : report.steps) {
    for (AnalyzedRank& rank : step.ranks) slots.push_back(&rank);
  }
  SharedWork work;
  work.bytes = json_bytes_ahead(plan.pairs);
  measuring::BytesAhead bytes(progress, plan.pairs.size(),
                              std::accumulate(work.bytes.begin(), work.bytes.end(), std::uint64_t{0}));
  work.units = "rank pairs";
  work.progress = progress;
  work.name = [&](std::size_t i) { return label_of(plan.pairs[i]); };
  for (const RankPair& pair : plan.pairs) {
    work.plan = fingerprint(fingerprint(work.plan, pair.target.json), pair.golden.json);
    work.processes.push_back(seen_by(pair).processes);
  }
  work.compute = [&](std::size_t i) {
    const RankPair& pair = plan.pairs[i];
    AnalyzedRank& rank = *slots[i];
    try {
      if (const std::string apart = seen_by(pair).apart; !apart.empty()) throw IoError(apart);
      rank = analyze_rank(pair, options, rules, time, bytes);
    } catch (const Error& error) {
      if (plan.pairs.size() == 1) throw;
      rank.failure = error.what();
      rank.differences.label = pair.target.label;
      rank.differences.number = number_of(pair);
    }
  };
  work.pack = [&](std::size_t i, PacketWriter& packet) { packet(*slots[i]); };
  work.unpack = [&](std::size_t i, PacketReader& packet) { packet(*slots[i]); };
  team().share(work);
  if (progress != nullptr) progress->end();
  if (!team().is_root()) return report;
  for (AnalyzedStep& step : report.steps) search_step(step, options, rules);
  return report;
}

std::string difference_json(const AnalyzedStep& step) {
  JsonWriter json({.indent = kDifferenceIndent});
  json.open_object();
  for (std::size_t i = 0; i < step.first.places.size(); ++i) {
    const FirstDifference::DifferencePlace& place = step.first.places[i];
    if (i == 0 || place.rank != step.first.places[i - 1].rank) {
      if (i != 0) json.close();
      json.open_list(fmt::format("rank_{}", step.ranks[step.searched[place.rank]].differences.number));
    }
    json.raw(place.entry->info);
  }
  while (json.depth() > 0) json.close();
  return json.take();
}

std::vector<std::string> not_judged(const DifferenceReport& report) {
  std::vector<std::string> lines;
  bool has_entries = false;
  bool mapping_applies = report.mapping_file.empty();
  for (const AnalyzedStep& step : report.steps) {
    for (const AnalyzedRank& rank : step.ranks) {
      if (!rank.failure.empty() || rank.differences.entries == 0) continue;
      has_entries = true;
      mapping_applies = mapping_applies || rank.differences.mapping_applies;
    }
  }
  if (has_entries && !mapping_applies) lines.push_back(idle_mapping_text(report.mapping_file));
  for (const std::string& line : report.one_sided) lines.push_back(display(line));
  const Coverage coverage = coverage_of(report);
  if (coverage.compared == 0 && !coverage.gaps.empty()) return lines;  // the coverage says why
  for (const AnalyzedStep& step : report.steps) {
    for (const AnalyzedRank& rank : step.ranks) {
      if (!rank.failure.empty() || rank.differences.coverage.compared > 0) continue;
      lines.push_back((step.label.empty() ? "" : display(step.label) + '/') +
                      display(rank.differences.label) + ": " +
                      rank.differences.coverage.text(diagnosis::kTensors));
    }
  }
  return lines;
}

Coverage coverage_of(const DifferenceReport& report) {
  Coverage all;
  for (const AnalyzedStep& step : report.steps) {
    for (const AnalyzedRank& rank : step.ranks) all.add(rank.differences.coverage);
  }
  return all;
}

std::string render_differences(const DifferenceReport& report, bool color) {
  std::string out;
  for (const AnalyzedStep& step : report.steps) {
    std::uint64_t entries = 0;
    std::uint64_t differing = 0;
    std::size_t compared = 0;
    for (const AnalyzedRank& rank : step.ranks) {
      if (!rank.failure.empty()) {
        out += rank_name(rank.differences) + "  " + report::paint("failed: ", report::Color::red, color) +
               rank.failure + "\n";
        continue;
      }
      ++compared;
      entries += rank.differences.entries;
      differing += rank.differences.differing;
    }
    out += fmt::format("{}{} rank{}, {} entries: ", step.label.empty() ? "" : display(step.label) + "  ",
                       human_count(compared), compared == 1 ? "" : "s", human_count(entries));
    const std::string count = human_count(differing) + (differing == 1 ? " differs" : " differ");
    out += (differing == 0 ? count : report::paint(count, report::Color::red, color)) + "\n";
    const std::vector<FirstDifference::DifferencePlace>& places = step.first.places;
    for (std::size_t i = 0; i < places.size() && i < kMostPlaces; ++i)
      render_place(out, step, places[i], color);
    if (places.size() > kMostPlaces)
      out += fmt::format("  and {} more at the same point\n", human_count(places.size() - kMostPlaces));
    if (places.empty() && differing > 0)
      out += "  only entries differ that the rules never name as the first difference (never_first)\n";
    if (!step.first.doubt.empty())
      out += "  " + report::paint("doubtful: ", report::Color::yellow, color) + step.first.doubt + "\n";
    for (const AnalyzedRank& rank : step.ranks) {
      if (!rank.file.empty()) out += "  written: " + display(rank.file) + "\n";
    }
    if (!step.file.empty()) out += "  written: " + display(step.file) + "\n";
  }
  const bool differs =
      std::ranges::any_of(report.steps, [](const AnalyzedStep& step) { return !step.first.places.empty(); });
  if (differs)
    out +=
        "judged by fixed limits, which noise may exceed; compare without -da shows where the error is "
        "introduced\n";
  for (const std::string& line : report.one_sided)
    out += report::paint("not compared: ", report::Color::yellow, color) + display(line) + "\n";
  return out;
}

}  // namespace msprobe::compare
