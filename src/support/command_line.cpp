// SPDX-License-Identifier: Apache-2.0
#include "support/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <utility>

#include "support/arguments.hpp"
#include "support/error.hpp"
#include "support/option_list.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

constexpr std::size_t kHelpWidth = 100;
constexpr std::size_t kHelpColumn = 32;  // the column where explanations begin

CommandInfo describe_app(const CLI::App& app, const OptionList& options) {
  CommandInfo info;
  info.summary = app.get_description();
  // Options of one group are adjacent; groups are in the order of their first options.
  std::vector<std::string> groups;
  const auto place = [&](const OptionInfo& option) {
    return std::find(groups.begin(), groups.end(), option.group) - groups.begin();
  };
  for (const OptionInfo& option : options.options()) {
    if (place(option) == std::ssize(groups)) groups.push_back(option.group);
    info.options.push_back(option);
  }
  std::ranges::stable_sort(info.options,
                           [&](const OptionInfo& a, const OptionInfo& b) { return place(a) < place(b); });
  for (const OptionInfo& operand : options.operands()) {
    if (!info.operands.empty()) info.operands += ' ';
    info.operands += argument_text(operand);
    if (info.operands_help.empty()) info.operands_help = operand.help;
  }
  return info;
}

/// Puts `left` in its column and wraps `text` beside it (or below it, if `left` is too long).
void append_entry(std::string& out, const std::string& left, const std::string& text) {
  std::string line = "  " + left;
  if (line.size() + 2 > kHelpColumn) {
    out += line + "\n";
    line.clear();
  }
  line.resize(kHelpColumn, ' ');
  bool empty = true;
  for (const std::string_view word : split(text, " ")) {
    if (!empty && line.size() + 1 + word.size() > kHelpWidth) {
      out += line + "\n";
      line.assign(kHelpColumn, ' ');
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  out += line + "\n";
}

std::string option_heading(const OptionInfo& option) {
  const std::string argument = argument_text(option);
  return fmt::format("{}{}{}", fmt::join(option.names, ", "), argument.empty() ? "" : " ", argument);
}

std::string group_help(const ProgramInfo& info, std::string_view group) {
  std::string out = fmt::format("Usage: msprobe {} command [options]\n\nCommands:\n", group);
  for (const CommandInfo& entry : info.commands) {
    if (group_of(entry.name) == group) append_entry(out, entry.name, entry.summary);
  }
  return out + fmt::format(
                   "\n'msprobe {0} COMMAND --help' and 'man msprobe-{0}-COMMAND' say more about a command.\n",
                   group);
}

/// Declares the options that the program and every command have.
void declare_common(OptionList& options, GlobalOptions& globals, bool& version) {
  options.add_help("-h,--help", "Show this help and exit").group(kGlobalGroup);
  declare_global_options(options, globals);
  options.add_flag("-V,--version", version, "Show the version of msprobe and of its libraries and exit")
      .group(kGlobalGroup);
}

UsageError as_usage_error(const CLI::ParseError& error, const CLI::App& program, const std::string& hint) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    const std::vector<std::string> extras = program.remaining(true);
    return UsageError(fmt::format("unexpected argument '{}'", display(extras.empty() ? "" : extras.front())),
                      hint);
  }
  return UsageError(display(error.what()), hint);
}

/// Whether the words may name the command: one of them is the last word of one of its names.
bool may_name(const std::vector<std::string>& words, const Command& command) {
  std::vector<std::string> names = command.other_names();
  names.emplace_back(command.name());
  return std::ranges::any_of(names, [&](const std::string& name) {
    return std::ranges::find(words, name.substr(name.rfind(' ') + 1)) != words.end();
  });
}

/// The headings of the options, in the order of the first option of each.
std::vector<std::string> groups_of(const CommandInfo& command) {
  std::vector<std::string> groups;
  for (const OptionInfo& option : command.options) {
    if (!option.manual_only && std::ranges::find(groups, option.group) == groups.end())
      groups.push_back(option.group);
  }
  return groups;
}

}  // namespace

struct CommandLine::Impl {
  std::vector<std::unique_ptr<Command>> commands;
  std::vector<AbsentCommand> absent;
  GlobalOptions globals;
  bool version = false;
  CLI::App program{"Compares the results of two training runs and shows where they diverge.", "msprobe"};
  OptionList options{program};
  std::deque<OptionList> options_of;  // of the commands, in their order; empty until they are declared

  void declare(std::size_t command);
  ProgramInfo describe() const;
};

void CommandLine::Impl::declare(std::size_t command) {
  OptionList& list = options_of[command];
  if (!list.options().empty()) return;
  Command& declared = *commands[command];
  declared.declare(list);
  if (declared.shares_work()) declare_sharing_options(list, globals, declared.takes_local_input());
  declare_common(list, globals, version);
}

ProgramInfo CommandLine::Impl::describe() const {
  ProgramInfo info{describe_app(program, options), {}, absent};
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string name(commands[i]->name());
    CommandInfo& described =
        info.commands.emplace_back(describe_app(*program.get_subcommand(parser_name(name)), options_of[i]));
    described.name = name;
    described.other_names = commands[i]->other_names();
  }
  return info;
}

CommandLine::CommandLine(std::vector<std::unique_ptr<Command>> commands, std::vector<AbsentCommand> absent)
    : impl_(std::make_unique<Impl>()) {
  impl_->commands = std::move(commands);
  impl_->absent = std::move(absent);
  CLI::App& program = impl_->program;
  // In the Python tool, too, an option that is given twice takes the last value.
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  declare_common(impl_->options, impl_->globals, impl_->version);
  for (const auto& command : impl_->commands) {
    CLI::App* app = program.add_subcommand(parser_name(command->name()), std::string(command->summary()));
    impl_->options_of.emplace_back(*app);
  }
}

CommandLine::~CommandLine() = default;

Request CommandLine::parse(const std::vector<std::string>& arguments) {
  CLI::App& program = impl_->program;
  // Declaring the options of all commands takes longer than the rest of a start.
  for (std::size_t i = 0; i < impl_->commands.size(); ++i)
    if (may_name(arguments, *impl_->commands[i])) impl_->declare(i);
  RewrittenArguments rewritten = rewrite_arguments(arguments, impl_->describe());
  std::vector<std::string>& words = rewritten.words;
  std::reverse(words.begin(), words.end());  // the parser needs the last word first
  const OptionList* options = nullptr;       // of the command
  const auto chosen = [&]() -> Command* {
    const auto parsed = program.get_subcommands();
    if (parsed.empty()) return nullptr;
    for (std::size_t i = 0; i < impl_->commands.size(); ++i) {
      if (parser_name(impl_->commands[i]->name()) != parsed.front()->get_name()) continue;
      options = &impl_->options_of[i];
      return impl_->commands[i].get();
    }
    return nullptr;
  };
  try {
    program.parse(words);
  } catch (const CLI::CallForHelp&) {
    return {Request::RequestedAction::help, chosen(), impl_->globals, rewritten.group};
  } catch (const CLI::ParseError& error) {
    if (impl_->version) return {Request::RequestedAction::version, nullptr, impl_->globals};
    const Command* command = chosen();
    throw as_usage_error(error, program,
                         command == nullptr ? "try 'msprobe --help'"
                                            : fmt::format("try 'msprobe {} --help'", command->name()));
  }
  if (impl_->version) return {Request::RequestedAction::version, nullptr, impl_->globals};
  Command* command = chosen();
  if (command != nullptr) {
    options->check_rules();
    return {Request::RequestedAction::run, command, impl_->globals};
  }
  if (arguments.empty()) return {Request::RequestedAction::help, nullptr, impl_->globals};
  if (!rewritten.group.empty())
    throw UsageError(fmt::format("'msprobe {}' needs a command", rewritten.group),
                     fmt::format("try 'msprobe {} --help'", rewritten.group));
  throw UsageError("no command given", "try 'msprobe --help'");
}

ProgramInfo CommandLine::describe() const {
  for (std::size_t i = 0; i < impl_->commands.size(); ++i) impl_->declare(i);
  return impl_->describe();
}

std::string_view group_of(std::string_view command) {
  const std::size_t blank = command.find(' ');
  return blank == std::string_view::npos ? std::string_view() : command.substr(0, blank);
}

bool is_group(const ProgramInfo& program, std::string_view word) {
  return !word.empty() && std::ranges::any_of(program.commands, [&](const CommandInfo& command) {
    return group_of(command.name) == word;
  });
}

std::vector<std::string> synopsis(const CommandInfo& command) {
  const auto typed = [](const OptionInfo& option) {
    const std::string argument = argument_text(option);
    return " " + option.names.front() + (argument.empty() ? "" : " ") + argument;
  };
  std::string always;             // always required
  std::string usual;              // required unless another option replaces it
  std::vector<std::string> ways;  // alternatives
  std::vector<const OptionInfo*> instead;
  for (const OptionInfo& option : command.options) {
    if (option.alternative) ways.push_back(typed(option));
    if (!option.required) continue;
    (option.instead.empty() ? always : usual) += typed(option);
    for (const OptionInfo& other : command.options) {
      const bool known = std::ranges::find(instead, &other) != instead.end();
      if (!known && std::ranges::find(option.instead, other.names.front()) != option.instead.end())
        instead.push_back(&other);
    }
  }
  if (ways.empty()) ways.push_back(usual);
  for (const OptionInfo* other : instead) ways.push_back(typed(*other));
  const std::string operands = command.operands.empty() ? "" : " " + command.operands;
  for (std::string& way : ways) way += always + " [options]" + (usual.empty() ? operands : "");
  // Operands may replace the required options.
  if (!usual.empty() && !operands.empty()) ways.insert(ways.begin(), always + " [options]" + operands);
  return ways;
}

std::string help_text(const ProgramInfo& info, std::string_view command) {
  if (is_group(info, command)) return group_help(info, command);
  const auto found = std::ranges::find_if(
      info.commands, [&](const CommandInfo& candidate) { return candidate.name == command; });
  const CommandInfo& shown = found == info.commands.end() ? info.program : *found;
  std::string out = shown.name.empty() ? "Usage: msprobe [options] command [options]\n" : "";
  if (!shown.name.empty()) {
    for (const std::string& line : synopsis(shown))
      out += fmt::format("{} msprobe {}{}\n", out.empty() ? "Usage:" : "      ", shown.name, line);
  }
  out += "\n" + shown.summary + "\n";
  if (!shown.operands.empty()) {
    out += "\nOperands:\n";
    append_entry(out, shown.operands, shown.operands_help);
  }
  if (shown.name.empty() && !info.commands.empty()) {
    out += "\nCommands:\n";
    for (const CommandInfo& entry : info.commands) append_entry(out, entry.name, entry.summary);
  }
  bool more = false;
  for (const std::string& group : groups_of(shown)) {
    out += fmt::format("\n{}:\n", group);
    for (const OptionInfo& option : shown.options) {
      more = more || option.manual_only;
      if (option.group != group || option.manual_only) continue;
      append_entry(out, option_heading(option),
                   option.default_value.empty()
                       ? option.help
                       : fmt::format("{}; default: {}", option.help, option.default_value));
    }
  }
  if (more) out += fmt::format("\n'man msprobe-{}' describes further options.\n", shown.name);
  if (shown.name.empty())
    out += "\n'msprobe COMMAND --help' and 'man msprobe-COMMAND' say more about a command.\n";
  return out;
}

}  // namespace msprobe
