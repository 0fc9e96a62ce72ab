// SPDX-License-Identifier: Apache-2.0
// The result of a conversion, as text for people and as a table.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "parse/parse.hpp"
#include "report/table.hpp"

namespace msprobe::parse {

/// Lists at most `rows` tensors and as many failures.
std::string render_summary(const ParseReport& report, std::size_t rows, bool color);

/// One row for each tensor, and for each file without a readable tensor. Refers to the report.
std::unique_ptr<report::Table> summary_table(const ParseReport& report);

}  // namespace msprobe::parse
