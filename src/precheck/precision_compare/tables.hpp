// SPDX-License-Identifier: Apache-2.0
// The two tables of api_precision_compare.
#pragma once

#include <memory>

#include "precheck/precision_compare/compare.hpp"
#include "report/table.hpp"

namespace msprobe::precheck {

struct PrecisionLook {
  bool english =
      false;  // headings in English, without the columns for which the Python tool has Chinese texts
  bool spelled = false;  // numbers as in the Python tool's csv files
};

/// The tables, which the result must outlive.
std::unique_ptr<report::Table> details_table(const PrecisionResult& result, const PrecisionLook& look);
std::unique_ptr<report::Table> operations_table(const PrecisionResult& result, const PrecisionLook& look);

}  // namespace msprobe::precheck
