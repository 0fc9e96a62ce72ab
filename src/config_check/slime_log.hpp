// SPDX-License-Identifier: Apache-2.0
// The arguments that slime (Megatron) prints into its log: a block of lines `name ..... value`.
#pragma once

#include <string>
#include <string_view>

#include "pack/value.hpp"
#include "support/byte_source.hpp"

namespace msprobe::config_check {

/// The first block in the log, as a map. FormatError naming `file` if there is none, or one without an end or
/// without arguments.
pack::Value find_slime_config(std::string_view log, const std::string& file);

/// The same of a log of any size: arguments are printed at its beginning, which alone is read.
pack::Value read_slime_log(const ByteSource& log);

}  // namespace msprobe::config_check
