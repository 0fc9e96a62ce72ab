// SPDX-License-Identifier: Apache-2.0
#include "compare/compare.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>

#include "compare/output.hpp"
#include "compare/pairing.hpp"
#include "compare/relatives.hpp"
#include "compare/reports/explain.hpp"
#include "compare/reports/html.hpp"
#include "compare/reports/report_data.hpp"
#include "compare/reports/result_table.hpp"
#include "compare/result/advice.hpp"
#include "compare/result/suggest.hpp"
#include "compare/result/tensor_rows.hpp"
#include "compare/result/verdict.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/log.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr std::size_t kSuggestions = 5;

std::string label_of(const RankPair& pair) {
  if (pair.step.empty()) return pair.target.label;
  return pair.step + "/" + pair.target.label;
}

Mode choose_mode(const Side& target, const Side& golden) {
  const auto check = [](const Side& side, std::string_view name) {
    if (side.header.task.empty())
      throw FormatError(display(side.json), fmt::format("'task' of the {} side is missing or empty", name));
    if (!side.header.has_data)
      throw FormatError(display(side.json), fmt::format("'data' of the {} side is missing", name));
  };
  check(target, "target");
  check(golden, "golden");
  const std::string& task = target.header.task;
  if (task != golden.header.task) {
    throw FormatError(fmt::format("the dump tasks differ: {} has '{}', {} has '{}'", display(target.json),
                                  display(task), display(golden.json), display(golden.header.task)));
  }
  if (task == "tensor") return Mode::tensor;
  if (task != "statistics" && task != "structure") {
    throw FormatError(
        display(target.json),
        fmt::format("task '{}' cannot be compared: only tensor and statistics can", display(task)));
  }
  if (target.has_md5 != golden.has_md5) {
    throw FormatError(
        fmt::format("only {} has checksums: both sides must be dumped with statistics, or both with md5",
                    display(target.has_md5 ? target.json : golden.json)));
  }
  return target.has_md5 ? Mode::md5 : Mode::statistics;
}

std::string beside(const std::string& file, const char* name) {
  return std::filesystem::path(file).replace_filename(name).string();
}

/// `DIR/[step/]compare_result[_rank]_TIMESTAMP` without suffix, the Python tool's name.
std::string result_stem(const CompareOptions& options, const RankPair& pair, const std::string& time,
                        const std::string& what = "compare_result") {
  std::string stem = options.output_directory;
  if (!pair.step.empty()) stem += "/" + pair.step;
  stem += dump::is_debug_json(pair.target.json) ? "/debug_" : "/";
  stem += what + "_";
  if (!pair.target.label.empty()) stem += pair.target.label + "_";
  return stem + time;
}

void write_joined(const std::vector<RankResult>& results, const CompareOptions& options,
                  CompareReport& report) {
  std::vector<const RankResult*> parts;
  for (const RankResult& result : results) {
    if (!result.rows.empty()) parts.push_back(&result);
  }
  if (parts.empty() || options.formats.empty()) return;
  const std::unique_ptr<report::Table> table =
      parts.size() == 1 ? result_table(*parts[0]) : joined_table(parts);
  if (options.output_file == "-") {
    report.pipe_closed = !report::write_stdout(*table, options.formats.front());
  } else {
    report.ranks.front().files = write_files(*table, options, options.output_file, false);
  }
}

/// UsageError if no rank has the entry and all could be asked.
void require_story(const CompareReport& report, const std::string& name,
                   const std::vector<std::vector<SimilarName>>& similar) {
  std::vector<SimilarName> all;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    if (!report.ranks[i].story.empty() || !report.ranks[i].failure.empty()) return;
    all.insert(all.end(), similar[i].begin(), similar[i].end());
  }
  throw_no_such_entry(name, std::move(all));
}

/// Leaves a writer when the reader of standard output is gone.
struct ClosedPipe {};

void write_report(const std::vector<PackedRank>& ranks, const std::string& path, CompareReport& report) {
  if (path == "-") {
    try {
      write_html(report, ranks, [](std::string_view bytes) {
        if (!write_all(STDOUT_FILENO, bytes, "standard output")) throw ClosedPipe();
      });
    } catch (const ClosedPipe&) {
      report.pipe_closed = true;
    }
    return;
  }
  OutputFile file(path);
  write_html(report, ranks, [&](std::string_view bytes) { file.write(bytes); });
  check_interrupt();
  file.commit();
  report.html_file = path;
}

}  // namespace

RankResult compare_ranks(const RankPair& pair, const CompareOptions& options, const Rules& rules,
                         Progress* progress) {
  if (dump::is_debug_json(pair.target.json) != dump::is_debug_json(pair.golden.json)) {
    throw FormatError(fmt::format("a debug.json is compared with a debug.json only: {}, {}",
                                  display(pair.target.json), display(pair.golden.json)));
  }
  RankResult result;
  result.step = pair.step;
  result.rank = pair.target.label;
  result.python_rules = options.python_rules;
  LoadOptions target_options{.stacks = options.stacks, .stack_json = options.stack_json};
  if (options.first_difference && !options.python_rules) target_options.communication = &rules;
  const LoadOptions golden_options{.stacks = false, .stack_json = {}};
  parallel_for(2, [&](std::size_t side) {
    if (side == 0) result.target = load_side(pair.target, target_options);
    if (side == 1) result.golden = load_side(pair.golden, golden_options);
  });
  result.mode = choose_mode(result.target, result.golden);
  if (options.first_difference && result.mode == Mode::tensor) result.mode = Mode::statistics;
  if (options.backend) {
    pair_consistent_rows(result, *options.backend);
  } else {
    pair_rows(result, options.match, rules);
  }
  if (result.mode == Mode::tensor) compare_tensor_rows(result, options.print_rows, progress);
  if (!options.first_difference) judge(result, rules);
  return result;
}

CompareReport compare(const CompareOptions& asked, Progress* progress) {
  if (std::optional<CompareReport> report = compare_relatives(asked, progress)) return std::move(*report);
  CompareOptions options = asked;
  options.match.python_rules = options.python_rules;
  load_mapping(options.match);
  const Rules rules = options.rules_file.empty() ? default_rules() : load_rules(options.rules_file);
  const Plan plan = make_plan(options);
  const bool fixed_name = !options.output_file.empty();
  const std::string time = timestamp();
  const bool explaining = !options.explain.empty();
  // Hours of work must not end at a folder that cannot be written.
  if (explaining) {
    // Nothing is written.
  } else if (!fixed_name) {
    create_directories(options.output_directory);
    check_output(options.output_directory + "/compare_result_" + time);
  } else if (options.output_file != "-") {
    check_output(options.output_file);
  }

  if (!options.suggest_mapping.empty()) check_output(options.suggest_mapping);
  CompareReport report;
  report.one_sided = plan.one_sided;
  report.ranks.resize(plan.pairs.size());
  std::vector<RankResult> kept(fixed_name && !options.html ? plan.pairs.size() : 0);
  std::vector<NamePairs> suggestions(plan.pairs.size());
  std::vector<PackedRank> packed(plan.pairs.size());
  std::vector<std::vector<SimilarName>> similar(plan.pairs.size());
  parallel_for(plan.pairs.size(), [&](std::size_t i) {
    const RankPair& pair = plan.pairs[i];
    RankSummary& summary = report.ranks[i];
    try {
      RankResult result = compare_ranks(pair, options, rules, progress);
      summary = summarize(result, options.summary);
      if (explaining) {
        summary.story = explain(result, options.explain, options.explain_width, options.explain_color);
        if (summary.story.empty()) similar[i] = similar_entries(result, options.explain, kSuggestions);
        return;
      }
      summary.advice = advise(result, options.match);
      if (!options.suggest_mapping.empty()) suggestions[i] = suggest_pairs(result);
      if (options.html) packed[i] = pack_rank(result, beside(pair.target.json, "construct.json"));
      if (options.match.method == Method::layer && !fixed_name) {
        if (!pair.step.empty()) create_directories(options.output_directory + "/" + pair.step);
        summary.files.push_back(result_stem(options, pair, time, "data_mapping") + ".yaml");
        write_data_mapping(result, summary.files.back());
      }
      if (!kept.empty()) {
        kept[i] = std::move(result);
      } else if (!result.rows.empty() && !options.formats.empty()) {
        if (!pair.step.empty()) create_directories(options.output_directory + "/" + pair.step);
        for (std::string& file :
             write_files(*result_table(result), options, result_stem(options, pair, time), true)) {
          summary.files.push_back(std::move(file));
        }
      }
    } catch (const Interrupted&) {
      throw;
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      // One pair only: there is nothing else to go on with.
      if (plan.pairs.size() == 1) throw;
      summary = {};
      summary.failure = error.what();
    }
    summary.label = label_of(pair);
    summary.target = pair.target.json;
    summary.golden = pair.golden.json;
  });
  if (progress != nullptr) progress->end();
  if (explaining) {
    require_story(report, options.explain, similar);
    return report;
  }
  if (!kept.empty()) write_joined(kept, options, report);
  if (!options.suggest_mapping.empty()) {
    if (write_suggestion(suggestions, options.suggest_mapping)) {
      report.ranks.front().files.push_back(options.suggest_mapping);
    } else {
      log_warning("--suggest-mapping: there is nothing to propose, and no file");
    }
  }
  if (options.html) {
    const std::string report_file = options.output_directory + "/compare_result_" + time + ".html";
    write_report(packed, fixed_name ? options.output_file : report_file, report);
  }
  return report;
}

}  // namespace msprobe::compare
