// SPDX-License-Identifier: Apache-2.0
// `msprobe compare` without its command line: what to compare, comparing it, writing it down.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/dialect.hpp"
#include "compare/matching/match.hpp"
#include "compare/reports/summary.hpp"
#include "compare/result/result.hpp"
#include "compare/rules/rules.hpp"
#include "compare/static_graph/graph_tree.hpp"
#include "dump/tree.hpp"
#include "report/writers.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

/// What -m says of the dumps.
enum class DumpKind {
  automatic,  // seen from what lies there
  atb,
};

struct CompareOptions {
  std::string target;
  std::string golden;
  std::string output_directory = "./output";
  std::string output_file;  // fixed name instead; "-" is stdout
  std::vector<report::Format> formats = {report::Format::csv};
  bool html = false;  // the report on all ranks, too
  bool stacks = true;
  std::string stack_json;
  bool print_rows = false;  // one log line a row in tensor mode
  Dialect dialect;
  bool first_difference = false;  // only what -da looks at: no tensors, no verdicts
  std::string rules_file;
  MatchOptions match;
  std::optional<Backend> backend;  // training against inference, and what trained
  DumpKind kind = DumpKind::automatic;
  bool formats_chosen = false;          // not the default
  bool nested = false;                  // a part of a dump of dynamic and static graphs
  std::string suggest_mapping;          // where to write a proposal for rows without partner; empty: nowhere
  std::optional<GraphSelection> graph;  // a static-graph dump is asked for, and which parts of it
  SummaryOptions summary;
  std::string explain;  // an entry that is told of instead of all that is written otherwise
  std::size_t explain_width = 100;
  bool explain_color = false;
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

/// Finds the ranks of both sides and pairs them: by number; by position where no number is common (or
/// where the dialect has it so). UsageError if the two paths are not of the same kind.
Plan make_plan(const CompareOptions& options);

/// Compares one pair of ranks and judges every row; a mapping has been loaded. Throws what the readers throw,
/// and FormatError for dumps that do not go together (other task, nothing to compare).
RankResult compare_ranks(const RankPair& pair, const CompareOptions& options, const Rules& rules,
                         Progress* progress);

/// Does it all. A pair of ranks that fails is reported in its summary and does not stop the others.
CompareReport compare(const CompareOptions& options, Progress* progress);

}  // namespace msprobe::compare
