// SPDX-License-Identifier: Apache-2.0
// What a person reads on the terminal when a comparison is done.
#pragma once

#include <string>

#include "compare/sinks/answer_text.hpp"
#include "compare/sinks/sink.hpp"
#include "compare/sinks/summary.hpp"

namespace msprobe::compare {

/// The answer, counts of all that was compared, what could not be compared, the files; with details each
/// comparison by itself, its first bad row in execution order and the worst ones.
std::string render_summary(const CompareReport& report, const SummaryOptions& options, const Screen& screen);

}  // namespace msprobe::compare
