// SPDX-License-Identifier: Apache-2.0
#include "support/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <utility>

#include "support/arguments.hpp"
#include "support/error.hpp"
#include "support/option_list.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

constexpr std::size_t kHelpWidth = 100;
constexpr std::size_t kHelpColumn = 32;  // where the explanations begin
constexpr const char* kOptionsGroup = "Options";

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

OptionInfo describe_option(const CLI::Option& option, const Aliases& aliases) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    for (const auto& [alias, full] : aliases) {
      if (full == "--" + name) info.names.push_back(alias);
    }
  }
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  info.help = option.get_description();
  info.group = option.get_group();
  if (option.get_items_expected_max() == 0) return info;

  // The parser's own type name is `NAME:{choice,choice}`; a tilde says that these are suggestions.
  const std::string type = option.get_type_name();
  const auto listed = [&type](std::string_view start) -> std::vector<std::string> {
    const std::size_t open = type.find(start);
    if (open == std::string::npos || type.back() != '}') return {};
    return split(std::string_view(type).substr(open + start.size(), type.size() - open - start.size() - 1),
                 ',');
  };
  info.choices = listed(":{");
  info.suggestions = listed(":~{");
  info.argument = type.substr(0, type.find_first_of(": "));
  info.values = option.get_items_expected_min();
  info.argument_optional = info.values == 0;
  info.list = option.get_delimiter() == ',';
  info.default_value = option.get_default_str();
  if (info.argument == "TEXT" && !info.choices.empty()) {
    info.argument = fmt::format("{}", fmt::join(info.choices, info.list ? "," : "|"));
  }
  return info;
}

CommandInfo describe_app(const CLI::App& app, const Aliases& aliases) {
  CommandInfo info;
  info.summary = app.get_description();
  info.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      if (!info.operands.empty()) info.operands += ' ';
      info.operands += option->get_type_name() + (option->get_items_expected_max() > 1 ? "..." : "");
      if (info.operands_help.empty()) info.operands_help = option->get_description();
    } else if (!option->get_group().empty()) {
      info.options.push_back(describe_option(*option, aliases));
    }
  }
  // A command's own options come first, however the parser ordered its help flag.
  std::stable_partition(info.options.begin(), info.options.end(),
                        [](const OptionInfo& option) { return option.group != kGlobalGroup; });
  return info;
}

/// `left` in its column, `text` wrapped beside it (or below it, where `left` is too long).
void append_entry(std::string& out, const std::string& left, const std::string& text) {
  std::string line = "  " + left;
  if (line.size() + 2 > kHelpColumn) {
    out += line + "\n";
    line.clear();
  }
  line.resize(kHelpColumn, ' ');
  bool empty = true;
  for (const std::string& word : split(text, ' ')) {
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
  std::string heading = fmt::format("{}", fmt::join(option.names, ", "));
  if (option.argument.empty()) return heading;
  return heading + (option.argument_optional ? " [" + option.argument + "]" : " " + option.argument);
}

std::string group_help(const ProgramInfo& info, std::string_view group) {
  std::string out = fmt::format("Usage: msprobe {} command [options]\n\nCommands:\n", group);
  for (const CommandInfo& entry : info.commands) {
    if (group_of(entry.name) == group) append_entry(out, entry.name, entry.summary);
  }
  return out +
         fmt::format(
             "\n'msprobe {0} COMMAND --help' and 'man msprobe-{0}-COMMAND' tell more about a command.\n",
             group);
}

/// What the program and every command have.
void declare_common(CLI::App& app, GlobalOptions& globals, bool& version) {
  app.set_help_flag("-h,--help", "Show this help and exit")->group(kGlobalGroup);
  OptionList options(app);
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

}  // namespace

struct CommandLine::Impl {
  std::vector<std::unique_ptr<Command>> commands;
  std::vector<AbsentCommand> absent;
  GlobalOptions globals;
  bool version = false;
  std::map<std::string, Aliases> aliases;
  CLI::App program{"Compares what two training runs computed and says where they part ways.", "msprobe"};
};

CommandLine::CommandLine(std::vector<std::unique_ptr<Command>> commands, std::vector<AbsentCommand> absent)
    : impl_(std::make_unique<Impl>()) {
  impl_->commands = std::move(commands);
  impl_->absent = std::move(absent);
  CLI::App& program = impl_->program;
  // As in the Python tool an option that is given twice takes the last value.
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->group(kOptionsGroup);
  declare_common(program, impl_->globals, impl_->version);
  for (const auto& command : impl_->commands) {
    CLI::App* app = program.add_subcommand(parser_name(command->name()), std::string(command->summary()));
    OptionList options(*app);
    command->declare(options);
    if (command->shares_work())
      declare_sharing_options(options, impl_->globals, command->takes_local_input());
    declare_common(*app, impl_->globals, impl_->version);
    impl_->aliases[std::string(command->name())] = command->aliases();
  }
}

CommandLine::~CommandLine() = default;

Request CommandLine::parse(const std::vector<std::string>& arguments) {
  CLI::App& program = impl_->program;
  Rewritten rewritten = rewrite_arguments(arguments, describe(), impl_->aliases);
  std::vector<std::string>& words = rewritten.words;
  std::reverse(words.begin(), words.end());  // the parser wants them last first
  const auto chosen = [&]() -> Command* {
    const auto parsed = program.get_subcommands();
    if (parsed.empty()) return nullptr;
    for (const auto& command : impl_->commands) {
      if (parser_name(command->name()) == parsed.front()->get_name()) return command.get();
    }
    return nullptr;
  };
  try {
    program.parse(words);
  } catch (const CLI::CallForHelp&) {
    return {Request::Kind::help, chosen(), impl_->globals, rewritten.group};
  } catch (const CLI::ParseError& error) {
    if (impl_->version) return {Request::Kind::version, nullptr, impl_->globals};
    const Command* command = chosen();
    throw as_usage_error(error, program,
                         command == nullptr ? "try 'msprobe --help'"
                                            : fmt::format("try 'msprobe {} --help'", command->name()));
  }
  if (impl_->version) return {Request::Kind::version, nullptr, impl_->globals};
  Command* command = chosen();
  if (command != nullptr) return {Request::Kind::run, command, impl_->globals};
  if (arguments.empty()) return {Request::Kind::help, nullptr, impl_->globals};
  if (!rewritten.group.empty())
    throw UsageError(fmt::format("'msprobe {}' needs the name of one of its commands", rewritten.group),
                     fmt::format("try 'msprobe {} --help'", rewritten.group));
  throw UsageError("no command given", "try 'msprobe --help'");
}

ProgramInfo CommandLine::describe() const {
  ProgramInfo info{describe_app(impl_->program, {}), {}, impl_->absent};
  for (const auto& command : impl_->commands) {
    const std::string name(command->name());
    CommandInfo& described = info.commands.emplace_back(
        describe_app(*impl_->program.get_subcommand(parser_name(name)), impl_->aliases.at(name)));
    described.name = name;
    described.other_names = command->other_names();
  }
  return info;
}

std::string_view group_of(std::string_view command) {
  const std::size_t blank = command.find(' ');
  return blank == std::string_view::npos ? std::string_view() : command.substr(0, blank);
}

bool is_group(const ProgramInfo& program, std::string_view word) {
  return !word.empty() &&
         std::any_of(program.commands.begin(), program.commands.end(),
                     [&](const CommandInfo& command) { return group_of(command.name) == word; });
}

std::string help_text(const ProgramInfo& info, std::string_view command) {
  if (is_group(info, command)) return group_help(info, command);
  const auto found = std::find_if(info.commands.begin(), info.commands.end(),
                                  [&](const CommandInfo& candidate) { return candidate.name == command; });
  const CommandInfo& shown = found == info.commands.end() ? info.program : *found;
  std::string out = shown.name.empty()
                        ? fmt::format("Usage: msprobe [options] command [options]\n\n{}\n", shown.summary)
                        : fmt::format("Usage: msprobe {} [options]{}{}\n\n{}\n", shown.name,
                                      shown.operands.empty() ? "" : " ", shown.operands, shown.summary);
  if (!shown.operands.empty()) {
    out += "\nOperands:\n";
    append_entry(out, shown.operands, shown.operands_help);
  }
  if (shown.name.empty() && !info.commands.empty()) {
    out += "\nCommands:\n";
    for (const CommandInfo& entry : info.commands) append_entry(out, entry.name, entry.summary);
  }
  std::vector<std::string> groups;
  for (const OptionInfo& option : shown.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    out += fmt::format("\n{}:\n", group);
    for (const OptionInfo& option : shown.options) {
      if (option.group != group) continue;
      append_entry(out, option_heading(option),
                   option.default_value.empty()
                       ? option.help
                       : fmt::format("{}; default: {}", option.help, option.default_value));
    }
  }
  if (!shown.footer.empty()) out += "\n" + shown.footer + "\n";
  if (shown.name.empty())
    out += "\n'msprobe COMMAND --help' and 'man msprobe-COMMAND' tell more about a command.\n";
  return out;
}

}  // namespace msprobe
