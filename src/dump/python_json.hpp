// SPDX-License-Identifier: Apache-2.0
// JSON text exactly as Python's json module writes it with indent=2: only ASCII, bare NaN and Infinity.
#pragma once

#include <string>
#include <string_view>

#include "dump/entry.hpp"

namespace msprobe::dump {

/// The text in quotes. Bytes that are not UTF-8 become the surrogates Python reads them as.
void append_json_string(std::string& out, std::string_view text);

/// The number as `repr` has it; NaN, Infinity, -Infinity.
void append_json_real(std::string& out, double value);

/// The value and all below it, each level `indent` columns further in; continuation lines begin at the column
/// of `level` * `indent`. `indent` 0 puts all on one line.
void append_json(std::string& out, const Entry& entry, Entry::Index node, int level, int indent = 2);

/// Ends a line and indents the next; nothing for an `indent` of 0.
void append_json_line(std::string& out, int level, int indent = 2);

}  // namespace msprobe::dump
