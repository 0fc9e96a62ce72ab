// SPDX-License-Identifier: Apache-2.0
// What a person reads on the terminal when a comparison is done.
#pragma once

#include <memory>
#include <string>

#include "compare/matching/match.hpp"
#include "compare/sinks/sink.hpp"

namespace msprobe::compare {

inline constexpr std::size_t kWorstRows = 10;

struct SummaryOptions {
  std::size_t top = kWorstRows;  // worst rows that are shown
  std::string by;  // a metric, by the name of its column; empty: the verdict and what it speaks of
};

/// UsageError if the comparison has no metric of the name that is asked for.
TaskSummary summarize(const Rows& rows, const SummaryOptions& options = {});

/// Summarizes each task; `match` is how rows were paired, for advice where many have no partner.
std::unique_ptr<Sink> summary_sink(const SummaryOptions& options, const MatchOptions& match);

/// A few lines: what was compared, counts by Result, the first bad row in execution order, the worst rows,
/// the files.
std::string render_summary(const CompareReport& report, bool color);

}  // namespace msprobe::compare
