// SPDX-License-Identifier: Apache-2.0
// `msprobe compare -da`: compares all ranks of a step and finds the entries where the two runs first diverge.
// The result goes into diff_analyze_*.json, and as text to the terminal.
#pragma once

#include <string>
#include <vector>

#include "compare/analysis/search.hpp"
#include "compare/compare.hpp"

namespace msprobe::compare {

/// One rank of a step after the search.
struct AnalyzedRank {
  RankDifferences differences;
  std::string failure;  // why it could not be compared; empty otherwise
  std::string file;     // compare_result_*.json
};

struct AnalyzedStep {
  std::string label;  // empty unless several steps were compared
  std::vector<AnalyzedRank> ranks;
  FirstDifference first;
  std::vector<std::size_t> searched;  // the ranks in `first`, by its numbers
  std::string file;                   // diff_analyze_*.json; empty if nothing differs
};

struct DifferenceReport {
  std::vector<AnalyzedStep> steps;
  std::vector<std::string> one_sided;
  std::string mapping_file = {};  // that was asked for; empty: none
};

/// The contents of diff_analyze_*.json.
std::string difference_json(const AnalyzedStep& step);

/// The ranks of which nothing was compared, a line each.
std::vector<std::string> not_judged(const DifferenceReport& report);

Coverage coverage_of(const DifferenceReport& report);

/// Prints a few lines for each step.
std::string render_differences(const DifferenceReport& report, bool color);

/// Needs folders with ranks on both sides (throws UsageError otherwise). A pair of ranks that fails is
/// reported in its place and does not stop the others.
DifferenceReport find_first_difference(const CompareOptions& options, Progress* progress);

/// True for a pair of files or of single ranks, which have no step to search.
bool is_single_pair(const CompareOptions& options);

}  // namespace msprobe::compare
