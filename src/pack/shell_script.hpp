// SPDX-License-Identifier: Apache-2.0
// The options of a training run as its launch script gives them. The script is read, never executed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"

namespace msprobe::pack {

/// A command that starts training: its words after expansion, from the launcher on.
struct Launch {
  std::vector<std::string> words;
  bool distributed = false;  // torchrun, msrun, deepspeed, …; not a plain python
};

/// The commands of the script that start training, in its order. Branches of `if`, `case`, `&&` and `||` are
/// taken as a shell would, by tests of literals and of variables whose value is known; where that cannot be
/// told there is a list for each way, which take every branch once and are not all combinations. FormatError
/// naming `file` for a script that makes more text, or has more ways, than any honest one.
std::vector<std::vector<Launch>> find_launches(std::string_view script, const std::string& file);

/// `--key value …` of one command: text, true where no value follows, a list where several do. Names without
/// the dashes. Given twice, the last counts. Behind the training program `name=value` is an option too.
FlatMap options_of(const Launch& launch);

/// The options of all distributed launches, or of all plain ones if there is none of those. What two commands
/// give differently is a `duplicate_value`, as between files. What is not the same on all ways through the
/// script is
/// `{"description": "depends_on_condition", "values": [...]}`, with null where a way does not give it.
FlatMap read_shell_script(std::string_view script, const std::string& file);

}  // namespace msprobe::pack
