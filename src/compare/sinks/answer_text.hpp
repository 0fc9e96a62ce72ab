// SPDX-License-Identifier: Apache-2.0
// The answer as text, in the form in which compilers give theirs: a headline, what is known of it, the line
// of code, and what to do next.
#pragma once

#include <cstddef>
#include <string>

#include "diagnosis/conclusion.hpp"
#include "report/terminal.hpp"

namespace msprobe::compare {

/// Where text is shown.
struct Screen {
  std::size_t width = report::kWholeLine;  // of a line; words are never broken
  bool color = false;
  bool links = false;  // lines of code become links
};

/// Several lines, each ended. Names are made safe to show. `judged`: nothing was left out that the diagnosis
/// does not know of.
std::string answer_text(const diagnosis::Diagnosis& diagnosis, const Screen& screen = {}, bool judged = true);

}  // namespace msprobe::compare
