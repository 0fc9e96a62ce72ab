// SPDX-License-Identifier: Apache-2.0
// How two calls differ in their arguments, dtypes and shapes (docs/how-it-decides.md, "Evidence").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/dtype_setting.hpp"
#include "diagnosis/finding.hpp"
#include "diagnosis/loss_scale.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

struct StructuralDifference {
  Kind kind = Kind::argument;
  std::uint32_t item = UINT32_MAX;  // of the target, if it has one
  std::string place;
  std::string target;  // the text of the value, dtype or shape
  std::string golden;
  bool setting = false;        // both are numbers, truth values or words from the text of the program
  std::string parameter = {};  // of a module, that one side alone has: its name
};

struct CalledOtherwise {
  std::optional<StructuralDifference> first;
  std::optional<StructuralDifference> excused;  // the first number that may be rounding
  double scalar_error = 0;                      // largest difference of numbers that may be rounding
};

/// Looks at all items of two paired forward entries. Numbers that differ by less than `rounding`, relatively,
/// do not count as a difference but as an error of the input. Types that differ as `setting` does, which may
/// be null, and numbers that `scale` explains do not count either.
CalledOtherwise called_otherwise(const dump::Side& target, std::uint32_t target_api, const dump::Side& golden,
                                 std::uint32_t golden_api, const std::vector<std::uint32_t>& golden_item,
                                 double rounding, const DtypeSetting* setting, const LossScale* scale);

}  // namespace msprobe::diagnosis
