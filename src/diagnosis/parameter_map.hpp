// SPDX-License-Identifier: Apache-2.0
// Maps the parameters of one implementation to those of the other by their contents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnosis/content_flow.hpp"

namespace msprobe::diagnosis {

/// Parameters that hold the same elements, except for zeros that pad one of them. Either each side has one,
/// or one side has in one parameter what the other has in several, for example a projection of queries, keys
/// and values. The numbers are contents; if ranks hold a parameter in parts, the whole is listed.
struct ParameterGroup {
  std::vector<std::uint32_t> ours;
  std::vector<std::uint32_t> theirs;
};

struct ParameterMap {
  std::vector<ParameterGroup> groups;
  std::vector<std::uint32_t> ours_alone;  // parameters without partner
  std::vector<std::uint32_t> theirs_alone;
  /// The group by content; kNone: it is in no group. A part is in the group of its whole.
  std::vector<std::uint32_t> group_of;
  std::vector<std::uint32_t> golden_group_of;
};

/// Two parameters have the same elements where Max, Min, Mean and Norm agree within `allowance`; several
/// parameters do together where the squares of their norms add up. It cannot tell transposed or permuted ones
/// apart. O(n log n) for n parameters.
ParameterMap map_parameters(const ContentFlow& target, const ContentFlow& golden, double allowance);

/// How far Max, Min, Mean and Norm of the same parameter may be apart, since recorders add elements in
/// different orders.
/// Derived: 64 roundoffs of float32.
inline constexpr double kSameContent = 0x1p-18;

/// The item of a parameter: the one in a module if it has one, else the place where a call takes it.
std::uint32_t parameter_place(const ContentFlow& flow, std::uint32_t content);
/// `layers.0.attn.q_proj.weight` where a module has it, else the place where a call takes it.
std::string parameter_name(const ContentFlow& flow, std::uint32_t content);

}  // namespace msprobe::diagnosis
