// SPDX-License-Identifier: Apache-2.0
// Compares two details files row by row, and derives the status of each operation.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "precheck/precision_compare/input.hpp"
#include "precheck/precision_compare/pair.hpp"
#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

struct OperationResult {
  std::string name;
  PythonStatus forward = PythonStatus::none;  // none: it has no forward output
  PythonStatus backward = PythonStatus::none;
  std::string message;    // of the Python tool
  std::string reason;     // reason of msprobe
  bool unjudged = false;  // an output has no verdict, although the pre-check did not skip it

  /// The worse status of both: error, else skip, else pass.
  PythonStatus worst() const;
};

struct PrecisionResult {
  std::vector<PairRow> rows;
  std::vector<OperationResult> operations;
  std::vector<std::string> warnings;
  std::size_t without_partner = 0;
};

/// Compares the files. Never throws because of the contents of rows. `selection`: as in judge_pair.
PrecisionResult compare_precision(const DetailsFile& device, const DetailsFile& other,
                                  const Standards& standards, std::optional<Selection> selection);

}  // namespace msprobe::precheck
