// SPDX-License-Identifier: Apache-2.0
// Compares dumps of the Ascend Transformer Boost: a folder with a statistic.csv of 15 columns, and, if that
// names them, files of tensors (spec/compare.md 12.6).
#pragma once

#include <string>
#include <vector>

#include "compare/atb/traits.hpp"
#include "compare/lists/list_rows.hpp"
#include "compare/metrics/traits.hpp"
#include "support/byte_source.hpp"

namespace msprobe {
class Progress;
}

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

/// Both folders, read but for their tensors.
struct AtbDumps {
  std::string target_folder;
  std::string golden_folder;
  AtbSide target;
  AtbSide golden;

  bool tensors() const { return target.tensors; }
};

/// FormatError if only one side has tensors.
AtbDumps read_atb(const std::string& target, const std::string& golden);

/// What only one side has, in words.
std::vector<std::string> one_sided(const AtbDumps& dumps);

/// Tensors that cannot be read are rows that say so.
RowList compare_atb(const AtbDumps& dumps, const AtbTraits& traits, const MeasureTraits& measure,
                    Progress* progress);

}  // namespace msprobe::compare
