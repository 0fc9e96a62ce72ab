// SPDX-License-Identifier: Apache-2.0
// What two calls were given otherwise: arguments, dtypes, shapes (docs/diagnosis.md, "Evidence").
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/finding.hpp"
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
CalledOtherwise called_otherwise(const dump::Side& target, std::uint32_t target_api, const dump::Side& golden,
                                 std::uint32_t golden_api, const std::vector<std::uint32_t>& golden_item,
                                 double rounding);

/// Two that both tell theirs: calls have other forms, which says nothing.
bool of_other_frameworks(const dump::Side& target, const dump::Side& golden);
/// MindSpore on one side alone: its operations are others, too. Those of MSAdapter are PyTorch's.
bool of_other_operations(const dump::Side& target, const dump::Side& golden);

/// 1 of `.input.1`; nothing for keywords and what is nested.
std::optional<std::size_t> position_of(const dump::Side& side, const dump::Item& item);

/// Calls `take(item, golden)` for the paired tensors that are parameters: of modules, or by their place in a
/// call. `golden_item`: partners, by item under test.
void for_each_parameter(const dump::Side& target, const std::vector<std::uint32_t>& golden_item,
                        const std::function<void(std::uint32_t item, std::uint32_t golden)>& take);

/// `input.0` of an item's name.
std::string place_text(const dump::Side& side, const dump::Item& item);

}  // namespace msprobe::diagnosis
