// SPDX-License-Identifier: Apache-2.0
// Values of a dump as JSON text, exactly as Python's json module writes it.
#pragma once

#include <string>
#include <string_view>

#include "dump/entry.hpp"
#include "support/json_writer.hpp"

namespace msprobe::dump {

/// The value and all below it, each level `indent` columns further in; continuation lines begin at the column
/// of `level` * `indent`. `indent` 0 puts all on one line.
void append_json(std::string& out, const Entry& entry, Entry::Index node, int level, int indent = 2);

/// The same, as the next value of `json`.
void append_json(JsonWriter& json, const Entry& entry, Entry::Index node);

}  // namespace msprobe::dump
