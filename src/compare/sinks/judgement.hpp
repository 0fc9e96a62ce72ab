// SPDX-License-Identifier: Apache-2.0
// What a comparison comes to: whether it passes a gate, and with which status the command ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compare/sinks/sink.hpp"
#include "diagnosis/sentences.hpp"
#include "support/command.hpp"

namespace msprobe::compare {

/// Where one gate does not let a comparison pass.
struct Gate {
  std::string_view fail_on = "never";  // culprit, error, warning, unmatched, never
  bool strict = false;                 // what could not be compared is a failure
};

/// Is there a diagnosis, and could all be judged?
bool is_judged(const CompareReport& report);

/// What was not judged at all is a finding, too: it must not pass for agreement.
bool found_culprit(const CompareReport& report);

/// Why no culprit is named: there is none, or nothing or not all could be judged.
diagnosis::NoCulprit judgement_of(const CompareReport& report);

/// Of a mapping file that names nothing of any target.
std::string idle_mapping_text(const std::string& file);

/// Steps, ranks and files of which nothing was judged at that gate, a line each.
std::vector<std::string> not_judged(const CompareReport& report, std::string_view fail_on);

Outcome judge(const CompareReport& report, const Gate& gate);

}  // namespace msprobe::compare
