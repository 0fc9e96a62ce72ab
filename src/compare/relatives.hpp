// SPDX-License-Identifier: Apache-2.0
// The comparisons of dumps that have no dump.json: which one two paths call for, and running it.
#pragma once

#include <optional>

#include "compare/compare.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

/// Nothing if both paths are ordinary dumps. Throws like compare().
std::optional<CompareReport> compare_relatives(const CompareOptions& options, Progress* progress);

}  // namespace msprobe::compare
