// SPDX-License-Identifier: Apache-2.0
// What a comparison comes to: whether it passes a gate, and with which status the command ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compare/sinks/sink.hpp"
#include "diagnosis/sentences.hpp"
#include "support/coverage.hpp"

namespace msprobe::compare {

/// Is there a diagnosis, and could all be judged?
bool is_judged(const CompareReport& report);

/// How many of the tensors that a gate of that level judges were compared.
Coverage coverage_of(const CompareReport& report, std::string_view fail_on);

/// Why no culprit is named: there is none, or nothing or not all could be judged.
diagnosis::NoCulprit judgement_of(const CompareReport& report);

/// Of a mapping file that names nothing of any target.
std::string idle_mapping_text(const std::string& file);

/// Steps, ranks and files of which nothing was judged at that gate, a line each.
std::vector<std::string> not_judged(const CompareReport& report, std::string_view fail_on);

/// Is there a finding of that level?
bool found_something(const CompareReport& report, std::string_view fail_on);

/// Did a part of it fail? `strict`: what could not be compared is a failure, too.
bool is_failed(const CompareReport& report, bool strict);

}  // namespace msprobe::compare
