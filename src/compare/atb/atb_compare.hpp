// SPDX-License-Identifier: Apache-2.0
// Compares dumps of the Ascend Transformer Boost: a folder with a statistic.csv of 15 columns, and, if that
// names them, files of tensors (docs/formats.md, "ATB dumps").
#pragma once

#include <string>
#include <vector>

#include "compare/imports.hpp"
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
  std::string tensor;         // below the folder; empty if there is none
};

struct AtbSide {
  bool tensors = false;  // the first row names a file
  std::vector<AtbItem> items;
  std::uint64_t skipped = 0;  // rows of another form
};

/// FormatError for a file without rows and for one that is no csv.
AtbSide read_atb_csv(const ByteSource& file);

/// Both folders as one task. Their statistic.csv are read at once; tensors when the task runs, and those that
/// cannot be read are rows that say so. FormatError if only one side has tensors.
Plan plan_atb(const std::string& target, const std::string& golden, Progress* progress);

}  // namespace msprobe::compare
