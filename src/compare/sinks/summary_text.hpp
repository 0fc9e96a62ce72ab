// SPDX-License-Identifier: Apache-2.0
// The text that the terminal shows when a comparison is done.
#pragma once

#include <string>

#include "compare/sinks/answer_text.hpp"
#include "compare/sinks/sink.hpp"
#include "compare/sinks/summary.hpp"

namespace msprobe::compare {

/// The answer, the counts of all rows, the parts that could not be compared, and the files. With details also
/// each comparison by itself, with its first bad row in execution order and its worst rows.
std::string render_summary(const CompareReport& report, const SummaryOptions& options, const Screen& screen);

/// The answer, the counts and the parts that could not be compared, for a page.
std::string render_result(const CompareReport& report);

}  // namespace msprobe::compare
