// SPDX-License-Identifier: Apache-2.0
// The answer as text, in the form of a compiler's messages: a headline, the known facts, the line of code,
// and the next step.
#pragma once

#include <cstddef>
#include <string>

#include "diagnosis/conclusion.hpp"
#include "report/terminal.hpp"

namespace msprobe::compare {

/// The device that shows the text.
struct Screen {
  std::size_t width = report::kWholeLine;  // of a line; words are never broken
  bool color = false;
  bool links = false;  // lines of code become links
};

/// Returns several lines, each ended. Names are made safe to show. `judged`: the comparison left out nothing
/// beyond what the diagnosis itself reports.
std::string answer_text(const diagnosis::Diagnosis& diagnosis, const Screen& screen = {}, bool judged = true);

}  // namespace msprobe::compare
