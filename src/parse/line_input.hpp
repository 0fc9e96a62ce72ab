// SPDX-License-Identifier: Apache-2.0
// The sources of the shell's input lines.
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

/// Lines from a pipe or a file. FormatError for a line that is longer than any command.
std::unique_ptr<LineInput> descriptor_lines(int descriptor);

/// Lines typed at the terminal, which is standard input and output, with a prompt and editing. If
/// `history_file` is not empty, the history is kept there between runs; failures to read or write it are
/// ignored.
std::unique_ptr<LineInput> terminal_lines(const std::string& prompt, const std::string& history_file);

/// `msprobe/parse_history` in the state folder of the XDG base directory specification. Empty if the
/// environment does not define the folder.
std::string history_file();

}  // namespace msprobe::parse
