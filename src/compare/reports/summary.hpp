// SPDX-License-Identifier: Apache-2.0
// What a person reads on the terminal when a comparison is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/result/result.hpp"

namespace msprobe::compare {

/// One line of the summary's tables.
struct NotedRow {
  std::string name;
  Verdict verdict = Verdict::pass;
  std::string measure;  // the number that made it stand out, with its name
  std::string reason;
  double weight = 0;  // larger is worse
  std::size_t index = 0;
};

/// What is kept of a pair of ranks when its rows are written and gone.
struct RankSummary {
  std::string label;  // "step0/rank1"; empty for two files
  std::string target;
  std::string golden;
  std::string failure;  // why this pair could not be compared; empty otherwise
  Mode mode = Mode::statistics;
  std::uint64_t rows = 0;
  std::uint64_t errors = 0;
  std::uint64_t warnings = 0;
  std::uint64_t unmatched = 0;    // target rows without a partner
  std::uint64_t golden_only = 0;  // reference items without a row
  std::uint64_t unreadable = 0;   // rows whose tensors could not be read or compared
  std::optional<NotedRow> first_bad;
  std::vector<NotedRow> worst;  // worst first, as many as SummaryOptions says
  std::string worst_by;         // the metric that sorts them; empty: the verdict
  std::string advice;           // where many rows are without partner: why, and what helps
  std::vector<std::string> files;
  std::string story;  // of the entry that was to be explained
};

inline constexpr std::size_t kWorstRows = 10;

struct SummaryOptions {
  std::size_t top = kWorstRows;  // worst rows that are shown
  std::string by;  // a metric, by the name of its column; empty: the verdict and what it speaks of
};

struct CompareReport {
  std::vector<RankSummary> ranks;
  std::vector<std::string> one_sided;
  std::string html_file;     // the report on all ranks
  bool pipe_closed = false;  // the reader of stdout went away
};

/// UsageError if the comparison has no metric of the name that is asked for.
RankSummary summarize(const RankResult& result, const SummaryOptions& options = {});

/// A few lines: what was compared, counts by Result, the first bad row in execution order, the worst rows,
/// the files.
std::string render_summary(const CompareReport& report, bool color);

}  // namespace msprobe::compare
