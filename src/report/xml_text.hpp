// SPDX-License-Identifier: Apache-2.0
// Text inside XML: in workbooks and in other XML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/cell_text.hpp"

namespace msprobe::report {

/// The longest text of a workbook's cell, in UTF-16 units.
inline constexpr std::size_t kMostCellText = 32'767;

/// Can a cell have the text unchanged? True if it needs no escapes, has no blanks at its ends (which XML
/// would drop) and is not too long.
bool is_plain_xml(std::string_view text, TextTraits traits);

/// Appends valid UTF-8 `text` so that a spreadsheet shows exactly that text: XML's own characters as
/// entities, control characters in the `_x001B_` notation of the format (also text that looks like this
/// notation), characters that XML does not allow as U+FFFD. Text of more than `limit` UTF-16 units is cut and
/// ends with an ellipsis.
void append_xml(std::string& out, std::string_view text, std::size_t limit);

/// Appends the text for an element or an attribute of other XML 1.0: XML's own characters and quotes as
/// entities; characters that XML does not allow, and bytes that are not UTF-8, as U+FFFD.
void append_xml_text(std::string& out, std::string_view text);

}  // namespace msprobe::report
