// SPDX-License-Identifier: Apache-2.0
// Finds the arguments that slime (Megatron) prints into its log: a block of lines `name ..... value`.
#pragma once

#include <string>
#include <string_view>

#include "pack/value.hpp"
#include "support/byte_source.hpp"

namespace msprobe::config_check {

/// The first block in the log, as a map. FormatError naming `file` if there is no block, or one without an
/// end or without arguments.
pack::PackValue find_slime_config(std::string_view log, const std::string& file);

/// The same for a log of any size. Reads only the beginning, where slime prints the arguments.
pack::PackValue read_slime_log(const ByteSource& log);

}  // namespace msprobe::config_check
