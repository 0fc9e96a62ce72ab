// SPDX-License-Identifier: Apache-2.0
// What is kept of all tasks when their rows are written.
#pragma once

#include <memory>
#include <string>

#include "compare/imports.hpp"
#include "compare/sinks/sink.hpp"
#include "pairing/match.hpp"
#include "pairing/rules.hpp"

namespace msprobe::compare {

inline constexpr std::size_t kWorstRows = 10;

struct SummaryOptions {
  std::size_t top = kWorstRows;  // worst rows that are shown
  std::string by;        // a metric, by the name of its column; empty: the verdict and what it speaks of
  bool details = false;  // each comparison with its worst rows, not all of them together
};

/// UsageError if the comparison has no metric of the given name.
TaskSummary summarize(const Rows& rows, const SummaryOptions& options = {});

/// Summarizes each task and makes one diagnosis of those of all tasks: where it first goes wrong. `match` is
/// how rows were paired, for advice where many have no partner; `rules` must outlive the sink.
std::unique_ptr<Sink> summary_sink(const SummaryOptions& options, const MatchOptions& match,
                                   const Rules& rules);

}  // namespace msprobe::compare
