// SPDX-License-Identifier: Apache-2.0
// The configuration that verl prints into its log: a Python dictionary or JSON over one line or many, each
// with the prefix of its process, with lines of other processes between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"
#include "support/byte_source.hpp"

namespace msprobe::config_check {

struct VerlConfig {
  pack::Value value;  // a map
  std::vector<std::string> warnings;
};

/// The last one in the log. FormatError naming `file` if there is none, or only the beginning of one.
VerlConfig find_verl_config(std::string_view log, const std::string& file);

/// The same for a log of any size, of which only the part that counts is kept in memory.
VerlConfig read_verl_log(const ByteSource& log);

/// Paths joined with `/`; lists and empty maps are values. FormatError naming `file` if that makes too much
/// text.
pack::FlatMap flatten_verl(const pack::Value& config, const std::string& file);

/// As Python has it, but a Boolean is no number.
bool equal_verl(const pack::Value& a, const pack::Value& b);

/// Is the path one that differs between any two runs: below `profiler` or `*_profiler`, or of Ray's own
/// settings?
bool is_runtime_path(std::string_view path);

}  // namespace msprobe::config_check
