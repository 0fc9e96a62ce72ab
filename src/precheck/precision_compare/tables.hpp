// SPDX-License-Identifier: Apache-2.0
// The two tables of api_precision_compare.
#pragma once

#include <memory>

#include "precheck/precision_compare/compare.hpp"
#include "report/table.hpp"

namespace msprobe::precheck {

struct PrecisionLook {
  bool english = false;  // headings, and no columns whose texts the Python tool has in Chinese
  bool spelled = false;  // numbers as the Python tool's csv files have them
};

/// The result must outlive them.
std::unique_ptr<report::Table> details_table(const PrecisionResult& result, const PrecisionLook& look);
std::unique_ptr<report::Table> operations_table(const PrecisionResult& result, const PrecisionLook& look);

}  // namespace msprobe::precheck
