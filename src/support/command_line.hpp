// SPDX-License-Identifier: Apache-2.0
// The program's command line: the available commands and options, and the user's request. Help texts,
// completion and the drift test read the same description of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/command.hpp"
#include "support/option_list.hpp"
#include "support/options.hpp"

namespace msprobe {

struct CommandInfo {
  std::string name;  // empty: the program itself; two words: one of a group
  std::vector<std::string> other_names;
  std::string summary;
  std::vector<OptionInfo> options;
  std::string operands;  // the help's name for words that are no options, e.g. "PATH..."; may be empty
  std::string operands_help;
};

/// A command that people may look for here, with the alternative.
struct AbsentCommand {
  std::string name;
  std::string instead;
};

struct ProgramInfo {
  CommandInfo program;
  std::vector<CommandInfo> commands;
  std::vector<AbsentCommand> absent;
};

/// The first of a name's two words; empty if it has one.
std::string_view group_of(std::string_view command);

/// True if it is the first word of commands' names.
bool is_group(const ProgramInfo& program, std::string_view word);

/// The user's request. `command` is null for help and version of the program and for help of a group.
struct Request {
  enum class RequestedAction { help, version, run };
  RequestedAction kind = RequestedAction::help;
  Command* command = nullptr;
  GlobalOptions globals;
  std::string group = {};  // the group whose help is requested
};

class CommandLine {
 public:
  explicit CommandLine(std::vector<std::unique_ptr<Command>> commands,
                       std::vector<AbsentCommand> absent = {});
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Reads the words after the program's name and fills the chosen command's options. Throws UsageError. May
  /// be called only once.
  Request parse(const std::vector<std::string>& arguments);

  /// All commands and options, in the order of help. A value is completed as a file name if its argument is
  /// called FILE, DIR or PATH.
  ProgramInfo describe() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The ways to call a command, after its name: " -i DIR [options]". Optional options are left out.
std::vector<std::string> synopsis(const CommandInfo& command);

/// The text of --help for the program (`command` empty), one command or a group of them, at most 100 columns
/// wide.
std::string help_text(const ProgramInfo& info, std::string_view command);

}  // namespace msprobe
