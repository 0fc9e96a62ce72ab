// SPDX-License-Identifier: Apache-2.0
// Reads csv as RFC 4180 has it: commas, quotes doubled inside quotes, line breaks inside quotes; lines may
// end with a line feed alone, and a byte order mark is passed over.
#pragma once

#include "sheets/sheet.hpp"
#include "support/byte_source.hpp"

namespace msprobe::sheets {

/// All cells are text. FormatError naming the file and the line for a quote that is not closed, text behind a
/// closing quote, and for a row that exceeds the limits. Empty lines give no row.
void read_csv(const ByteSource& file, const RowVisitor& visit);

}  // namespace msprobe::sheets
