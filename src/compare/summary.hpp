// SPDX-License-Identifier: Apache-2.0
// What a person reads on the terminal when a comparison is done.
#pragma once

#include <string>

#include "compare/compare.hpp"

namespace msprobe::compare {

/// A few lines: what was compared, counts by Result, the first bad row in execution order, the worst rows,
/// the files.
std::string render_summary(const CompareReport& report, bool color);

}  // namespace msprobe::compare
