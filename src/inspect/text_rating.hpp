// SPDX-License-Identifier: Apache-2.0
// Texts that lie in the folder of a model: what they have a loader run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inspect/facts.hpp"
#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// What the text has a loader run or import, by loader_marks.hpp, and templates that leave their sandbox.
/// Without what is ok; at most one of each kind and name. `name` may be a path.
std::vector<ContentFacts> rate_text(const ByteSource& file, std::string_view name, const std::string& where);

}  // namespace msprobe::inspect
