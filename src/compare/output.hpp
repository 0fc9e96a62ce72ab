// SPDX-License-Identifier: Apache-2.0
// Result files: their names and formats.
#pragma once

#include <string>
#include <vector>

#include "compare/compare.hpp"
#include "report/table.hpp"

namespace msprobe::compare {

/// Local time as result files have it in their names.
std::string timestamp();

/// Writes the table in every format asked for; `add_extension` puts `.csv` and so on behind the stem.
std::vector<std::string> write_files(const report::Table& table, const CompareOptions& options,
                                     const std::string& stem, bool add_extension);

}  // namespace msprobe::compare
