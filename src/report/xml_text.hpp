// SPDX-License-Identifier: Apache-2.0
// Text inside XML: of a workbook, and of anything else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/cell_text.hpp"

namespace msprobe::report {

/// What a cell of a workbook holds at most, in UTF-16 units.
inline constexpr std::size_t kMostCellText = 32'767;

/// Can the text stand in a cell as it is: no escape, no blanks at the ends that XML must be told to keep, not
/// too long?
bool is_plain_xml(std::string_view text, TextTraits traits);

/// Appends valid UTF-8 `text` so that a spreadsheet shows exactly that: XML's own characters as entities,
/// control characters in the `_x001B_` notation of the format (as is text that looks like it), characters
/// that XML does not know as U+FFFD. Text of more than `limit` UTF-16 units is cut and ends in an ellipsis.
void append_xml(std::string& out, std::string_view text, std::size_t limit);

/// Appends the text for an element or an attribute of other XML 1.0: XML's own characters and quotes as
/// entities; what XML does not know, and what is no UTF-8, as U+FFFD.
void append_xml_text(std::string& out, std::string_view text);

}  // namespace msprobe::report
