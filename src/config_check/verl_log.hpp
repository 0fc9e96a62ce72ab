// SPDX-License-Identifier: Apache-2.0
// Finds the configuration that verl prints into its log: a Python dictionary or JSON over one or more lines,
// each with the prefix of its process. Lines of other processes may be between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"
#include "support/byte_source.hpp"

namespace msprobe::config_check {

struct VerlConfig {
  pack::PackValue value;  // a map
  std::vector<std::string> warnings;
};

/// The last configuration in the log, of which only the part around it is kept in memory. FormatError if the
/// log has no configuration or only the beginning of one.
VerlConfig read_verl_log(const ByteSource& log);

/// Joins the keys of a path with `/`; lists and empty maps are values. FormatError naming `file` if the
/// result gets too long.
pack::FlatMap flatten_verl(const pack::PackValue& config, const std::string& file);

/// Equality as in Python, except that a Boolean is not equal to a number.
bool equal_verl(const pack::PackValue& a, const pack::PackValue& b);

/// Does the value at the path differ between any two runs? True below `profiler` or `*_profiler`, and for
/// Ray's own settings.
bool is_runtime_path(std::string_view path);

}  // namespace msprobe::config_check
