// SPDX-License-Identifier: Apache-2.0
// Summarizes all tasks after their rows are written.
#pragma once

#include <memory>
#include <string>

#include "compare/sinks/sink.hpp"
#include "pairing/match.hpp"
#include "pairing/rules.hpp"

namespace msprobe::compare {

inline constexpr std::size_t kWorstRows = 10;

struct SummaryOptions {
  std::size_t top = kWorstRows;  // worst rows that are shown
  std::string by;                // a metric, by the name of its column; empty: the verdict and its measure
  bool details = false;          // shows each comparison with its worst rows, not all together
};

/// Throws UsageError if the comparison has no metric of the given name.
TaskSummary summarize(const Rows& rows, const SummaryOptions& options = {});

/// Summarizes each task and makes one diagnosis of all tasks, which finds where the run first goes wrong.
/// `match` says how rows were paired, for advice if many have no partner; `rules` must outlive the sink.
std::unique_ptr<Sink> summary_sink(const SummaryOptions& options, const pairing::MatchOptions& match,
                                   const pairing::Rules& rules);

}  // namespace msprobe::compare
