// SPDX-License-Identifier: Apache-2.0
// What two calls were given otherwise: arguments, dtypes, shapes (docs/how-it-decides.md, "Evidence").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/dtype_setting.hpp"
#include "diagnosis/finding.hpp"
#include "diagnosis/imports.hpp"
#include "diagnosis/loss_scale.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

struct StructuralDifference {
  Kind kind = Kind::argument;
  std::uint32_t item = UINT32_MAX;  // of the side under test, if it has one
  std::string place;
  std::string target;  // as values, dtypes or shapes are written
  std::string golden;
  bool setting = false;  // both are numbers, truths or words that stand in the program
};

struct CalledOtherwise {
  std::optional<StructuralDifference> first;
  std::optional<StructuralDifference> excused;  // the first number that may be rounding
  double scalar_error = 0;                      // of numbers that differ by so little that it may be rounding
};

/// Looks at all items of two paired forward entries. Numbers that differ by less than `rounding`, relatively,
/// are no difference but an error of the input.
/// Types that differ as `setting`, if there is one, are none either, nor are numbers that `scale` explains.
CalledOtherwise called_otherwise(const dump::Side& target, std::uint32_t target_api, const dump::Side& golden,
                                 std::uint32_t golden_api, const std::vector<std::uint32_t>& golden_item,
                                 double rounding, const DtypeSetting* setting, const LossScale* scale);

}  // namespace msprobe::diagnosis
