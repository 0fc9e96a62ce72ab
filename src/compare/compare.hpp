// SPDX-License-Identifier: Apache-2.0
// `msprobe compare` without its command line: what to compare, comparing it, writing it down.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/result.hpp"
#include "compare/rules.hpp"
#include "dump/tree.hpp"
#include "report/writers.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

struct CompareOptions {
  std::string target;
  std::string golden;
  std::string output_directory = "./output";
  std::string output_file;  // fixed name instead; "-" is stdout
  std::vector<report::Format> formats = {report::Format::csv};
  bool stacks = true;
  std::string stack_json;
  bool print_rows = false;  // one log line a row in tensor mode
  bool python_rules = false;
  std::string rules_file;
};

/// Two ranks that belong together.
struct RankPair {
  std::string step;
  dump::RankDump target;
  dump::RankDump golden;
};

struct Plan {
  std::vector<RankPair> pairs;
  std::vector<std::string> one_sided;  // "step0/rank3: only in the target", …
};

/// Finds the ranks of both sides and pairs them: by number; by position where no number is common (or with
/// `python_rules`, as the Python tool does). UsageError if the two paths are not of the same kind.
Plan make_plan(const CompareOptions& options);

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
  std::vector<NotedRow> worst;  // at most kWorstRows, worst first
  std::vector<std::string> files;
};
inline constexpr std::size_t kWorstRows = 10;

struct CompareReport {
  std::vector<RankSummary> ranks;
  std::vector<std::string> one_sided;
  bool pipe_closed = false;  // the reader of stdout went away
};

/// Compares one pair of ranks and judges every row. Throws what the readers throw, and FormatError for dumps
/// that do not go together (other task, nothing to compare).
RankResult compare_ranks(const RankPair& pair, const CompareOptions& options, const Rules& rules,
                         Progress* progress);

RankSummary summarize(const RankResult& result);

/// Does it all. A pair of ranks that fails is reported in its summary and does not stop the others.
CompareReport compare(const CompareOptions& options, Progress* progress);

}  // namespace msprobe::compare
