// SPDX-License-Identifier: Apache-2.0
// Finds parameters whose content is under another name: exchanged, copied, tied. Sums up the relations of all
// parameters for people, in one line for all layers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/compare.hpp"
#include "checkpoint/match.hpp"

namespace msprobe::checkpoint {

/// Fills in the relations that other parameters explain, by the contents of those that differ.
void relate_to_others(std::vector<ParameterResult>& results);

/// Fill in relations that are still empty. `results` belong to `pairs`, in their order. The first finds
/// parameters that differ because one side became a copy of a parameter that is equal on both sides: a head
/// tied to the embedding, a copied layer. (Parameters that are equal on both sides are not hashed.) The
/// second is for quantized weights that differ by more than the steps of their format: their elements are
/// near, not equal, so hashes fail.
void relate_to_equal(std::span<const Pairing::ParameterPair> pairs, std::vector<ParameterResult>& results);
void relate_near_contents(std::span<const Pairing::ParameterPair> pairs,
                          std::vector<ParameterResult>& results);

/// Texts for a parameter that has the place of the one with this name: both changed places, the second has
/// its content, or both are the same on one side.
std::string exchanged_text(const std::string& name);
std::string moved_text(const std::string& name);
std::string same_text(const std::string& name, bool in_second);

/// A line for each relation, with the parameters that have it: "self_attn.q_proj.weight of 32 layers: rows
/// permuted: ...".
std::vector<std::string> relation_lines(const std::vector<ParameterResult>& results);

}  // namespace msprobe::checkpoint
