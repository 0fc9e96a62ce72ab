// SPDX-License-Identifier: Apache-2.0
// Where the shell's lines come from.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace msprobe::parse {

class LineInput {
 public:
  virtual ~LineInput() = default;
  /// The next line without its end; nothing at the end of the input. Throws Interrupted.
  virtual std::optional<std::string> next() = 0;
};

/// Lines of a pipe or a file. One that is longer than a command could ever be is a FormatError.
std::unique_ptr<LineInput> descriptor_lines(int descriptor);

/// Lines typed at the terminal that is standard input and output, with a prompt and editing. The history
/// lasts longer than the process if `history_file` is not empty; a history that can be neither read nor
/// written is no error.
std::unique_ptr<LineInput> terminal_lines(const std::string& prompt, const std::string& history_file);

/// `msprobe/parse_history` in the folder that the XDG base directory specification gives for state. Empty if
/// the environment names none.
std::string history_file();

}  // namespace msprobe::parse
