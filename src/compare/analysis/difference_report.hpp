// SPDX-License-Identifier: Apache-2.0
// What the search for the first difference tells: diff_analyze_*.json, and words for the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare/analysis/search.hpp"

namespace msprobe::compare {

/// One rank of a step, looked at.
struct AnalyzedRank {
  RankDifferences differences;
  std::string failure;  // why it could not be compared; empty otherwise
  std::string file;     // compare_result_*.json
};

struct AnalyzedStep {
  std::string label;  // empty unless several steps were compared
  std::vector<AnalyzedRank> ranks;
  FirstDifference first;
  std::vector<std::size_t> searched;  // the ranks that `first` speaks of, by its numbers
  std::string file;                   // diff_analyze_*.json; empty if nothing differs
};

struct DifferenceReport {
  std::vector<AnalyzedStep> steps;
  std::vector<std::string> one_sided;
};

/// The contents of diff_analyze_*.json.
std::string difference_json(const AnalyzedStep& step);

/// A few lines for each step.
std::string render_differences(const DifferenceReport& report, bool color);

}  // namespace msprobe::compare
