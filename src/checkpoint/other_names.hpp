// SPDX-License-Identifier: Apache-2.0
// Parameters whose content stands under another name: exchanged, copied, tied. And the relations of all, as
// people say them: once for all layers.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/compare.hpp"

namespace msprobe::checkpoint {

/// Fills in the relations that other parameters explain, by the contents of those that differ.
void relate_to_others(std::vector<ParameterResult>& results);

/// What is said of a parameter that has the place of the one with this name: both changed places, the second
/// has its content, or on one side both are the same.
std::string exchanged_text(const std::string& name);
std::string moved_text(const std::string& name);
std::string same_text(const std::string& name, bool in_second);

/// A line for each relation, with what it holds for: "self_attn.q_proj.weight of 32 layers: rows permuted:
/// ...".
std::vector<std::string> relation_lines(const std::vector<ParameterResult>& results);

}  // namespace msprobe::checkpoint
