// SPDX-License-Identifier: Apache-2.0
// What a conversion came to, for people and as a table.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "parse/parse.hpp"
#include "report/table.hpp"

namespace msprobe::parse {

/// At most `rows` tensors and as many failures are listed.
std::string render_summary(const ParseReport& report, std::size_t rows, bool color);

/// One row a tensor, and one for each file of which nothing could be read. Refers to the report.
std::unique_ptr<report::Table> summary_table(const ParseReport& report);

}  // namespace msprobe::parse
