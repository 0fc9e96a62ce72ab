// SPDX-License-Identifier: Apache-2.0
// Identifies parameters that the other side does not have as they are by their contents: the same elements
// under another name, or a part of another parameter.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/parameter.hpp"

namespace msprobe::checkpoint {

/// "the same as wq.weight in the second", "rows 0 to 63 of Wqkv.weight in the second", for parameters by side
/// (true: the second) and name.
using LoneContents = std::map<std::pair<bool, std::string>, std::string>;

/// Compares first rows, then all elements of parameters with equal first rows. Elements of different types
/// are compared as rounded to the narrower type. Leaves out integers, parameters that hold one number
/// throughout, and parameters that cannot be read. `on_bytes` as in MeasureOptions.
LoneContents find_lone_contents(const std::vector<Parameter>& first, const std::vector<Parameter>& second,
                                const std::function<void(std::uint64_t)>& on_bytes = {});

/// For two parameters whose shapes differ along one axis: returns "the second is columns 0 to 511 of the
/// first" for a slice at either end of that axis. Empty if it is no slice, or cannot be read.
std::string find_slice(const Parameter& first, const Parameter& second);

}  // namespace msprobe::checkpoint
