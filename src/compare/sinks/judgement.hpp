// SPDX-License-Identifier: Apache-2.0
// Judges a comparison: whether it passes a gate, and the exit status of the command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compare/sinks/sink.hpp"
#include "diagnosis/sentences.hpp"
#include "support/coverage.hpp"

namespace msprobe::compare {

/// True if there is a diagnosis and it could judge everything.
bool is_judged(const CompareReport& report);

/// Counts the tensors that were compared, among those that a gate of that level judges.
Coverage coverage_of(const CompareReport& report, std::string_view fail_on);

/// Says why no culprit is named: all was judged without finding one, or some or all could not be judged.
diagnosis::NoCulprit judgement_of(const CompareReport& report);

/// The message about a mapping file that names nothing of any target.
std::string idle_mapping_text(const std::string& file);

/// The steps, ranks and files of which nothing was judged at that gate, a line each.
std::vector<std::string> not_judged(const CompareReport& report, std::string_view fail_on);

/// True if there is a finding of that level.
bool found_something(const CompareReport& report, std::string_view fail_on);

/// True if a part of the comparison failed. `strict`: a part that could not be compared is a failure, too.
bool is_failed(const CompareReport& report, bool strict);

}  // namespace msprobe::compare
