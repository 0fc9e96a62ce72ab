// SPDX-License-Identifier: Apache-2.0
// Which parameter of one implementation is which of the other, by what is in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnosis/content_flow.hpp"

namespace msprobe::diagnosis {

/// Parameters that hold the same elements, but for zeros that one of them is padded with: one on each side,
/// or one that the other side has in several, as a projection of queries, keys and values. Contents; a whole
/// stands for the parts that ranks hold of it.
struct ParameterGroup {
  std::vector<std::uint32_t> ours;
  std::vector<std::uint32_t> theirs;
};

struct ParameterMap {
  std::vector<ParameterGroup> groups;
  std::vector<std::uint32_t> ours_alone;  // parameters without partner
  std::vector<std::uint32_t> theirs_alone;
  /// By content, the group; kNone: it is in none. A part is in the group of the whole.
  std::vector<std::uint32_t> group_of;
  std::vector<std::uint32_t> golden_group_of;
};

/// Elements are the same where Max, Min, Mean and Norm are, within `allowance`, and of several where the
/// squares of their norms add up. Transposed and permuted ones are not told apart. O(n log n) for n
/// parameters.
ParameterMap map_parameters(const ContentFlow& target, const ContentFlow& golden, double allowance);

/// What Max, Min, Mean and Norm of the same parameter may be off by, which recorders compute in other orders.
/// Derived: 64 roundoffs of float32.
inline constexpr double kSameContent = 0x1p-18;

/// The item of a parameter: that of a module where it has one, else where a call takes it.
std::uint32_t parameter_place(const ContentFlow& flow, std::uint32_t content);
/// `layers.0.attn.q_proj.weight` where a module has it, else the place where a call takes it.
std::string parameter_name(const ContentFlow& flow, std::uint32_t content);

}  // namespace msprobe::diagnosis
