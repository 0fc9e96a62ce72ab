// SPDX-License-Identifier: Apache-2.0
// Compares dumps of the Ascend Transformer Boost: a folder with a statistic.csv of 15 columns, and the tensor
// files that it names, if any (docs/formats.md, "ATB dumps").
#pragma once

#include <string>
#include <vector>

#include "compare/task.hpp"
#include "support/byte_source.hpp"

namespace msprobe::compare {

/// One row of an ATB statistic.csv.
struct AtbItem {
  std::string name;  // `0_Model/3_Linear/input.0`
  std::string device;
  std::string execution;
  std::string dtype;
  std::string shape;
  std::string statistics[4];  // max, min, mean, norm, as they are written
  std::string tensor;         // below the folder; empty without a file
};

struct AtbSide {
  bool tensors = false;  // the first row names a file
  std::vector<AtbItem> items;
  std::uint64_t skipped = 0;  // rows of another form
};

/// Throws FormatError for a file without rows and for a file that is no csv.
AtbSide read_atb_csv(const ByteSource& file);

/// Compares both folders as one task. The statistic.csv files are read at once, the tensors when the task
/// runs; a tensor that cannot be read gives a row that says so. Throws FormatError if only one side has
/// tensors.
TaskPlan plan_atb(const std::string& target, const std::string& golden, Progress* progress);

}  // namespace msprobe::compare
