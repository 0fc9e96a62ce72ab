// SPDX-License-Identifier: Apache-2.0
// Finds parameters whose content is under another name: exchanged, copied, tied. Sums up the relations of all
// parameters for people, in one line for all layers.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/compare.hpp"

namespace msprobe::checkpoint {

/// Fills in the relations that other parameters explain, by the contents of those that differ.
void relate_to_others(std::vector<ParameterResult>& results);

/// Texts for a parameter that has the place of the one with this name: both changed places, the second has
/// its content, or both are the same on one side.
std::string exchanged_text(const std::string& name);
std::string moved_text(const std::string& name);
std::string same_text(const std::string& name, bool in_second);

/// A line for each relation, with the parameters that have it: "self_attn.q_proj.weight of 32 layers: rows
/// permuted: ...".
std::vector<std::string> relation_lines(const std::vector<ParameterResult>& results);

}  // namespace msprobe::checkpoint
