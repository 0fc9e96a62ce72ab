// SPDX-License-Identifier: Apache-2.0
// The options of a training run as its launch script gives them. The script is read, never executed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"

namespace msprobe::pack {

/// A command that starts training: its words with variables put in, from the launcher on.
struct Launch {
  std::vector<std::string> words;
  bool distributed = false;  // torchrun, msrun, deepspeed, …; not a plain python
};

/// The launches of a script. Conditions are not evaluated: each way through the script has a list of
/// launches, in its order. Together the ways take every branch of each condition, and skip it. Loops and
/// functions run on some ways only.
struct ShellScript {
  std::vector<std::vector<Launch>> ways;
  std::vector<std::size_t> not_understood;  // lines with conditions, loops, functions and substitutions
};

/// FormatError naming `file` for a script that makes more text, or has more ways, than any honest one.
ShellScript read_script(std::string_view script, const std::string& file);

/// `--key value …` of one command: text, true where no value follows, a list where several do. Names without
/// the dashes. Given twice, the last counts. After the training program, `name=value` is an option, too.
FlatMap options_of(const Launch& launch);

/// The options of all distributed launches, or of all plain ones if none is distributed. An option that two
/// commands give differently is a `duplicate_value`, as between files. One that differs between ways is
/// `{"description": "depends_on_condition", "values": [...]}`, with null where a way does not give it.
FlatMap options_of(const ShellScript& script);

}  // namespace msprobe::pack
