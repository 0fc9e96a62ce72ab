// SPDX-License-Identifier: Apache-2.0
#include "support/completion.hpp"

#include <algorithm>
#include <utility>

#include "support/json_writer.hpp"

namespace msprobe {
namespace {

const OptionInfo* find_option(const CommandInfo& command, std::string_view name) {
  for (const OptionInfo& option : command.options) {
    if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) return &option;
  }
  return nullptr;
}

/// bash splits words at `=`, so the pieces are joined again.
std::vector<std::string> join_at_equals(const std::vector<std::string>& words) {
  std::vector<std::string> joined;
  bool glue = false;
  for (const std::string& word : words) {
    if (!joined.empty() && (glue || word == "=") && joined.back().size() > 1 && joined.back()[0] == '-') {
      joined.back() += word;
      glue = word == "=";
    } else {
      joined.push_back(word);
    }
  }
  return joined;
}

class Candidates {
 public:
  Candidates(Shell shell, std::string prefix) : shell_(shell), prefix_(std::move(prefix)) {}

  void add(const std::string& word, std::string_view help) {
    if (!word.starts_with(prefix_)) return;
    if (shell_ == Shell::zsh) {
      // zsh splits at the first colon without a backslash before it.
      for (const char c : word) {
        if (c == ':' || c == '\\') text_ += '\\';
        text_ += c;
      }
    } else {
      text_ += word;
    }
    if (shell_ != Shell::bash && !help.empty()) {
      text_ += shell_ == Shell::fish ? '\t' : ':';
      text_ += help;
    }
    text_ += '\n';
  }

  const std::string& text() const { return text_; }

 private:
  Shell shell_;
  std::string prefix_;
  std::string text_;
};

/// Adds the commands, or those of a group; adds only the first word of other groups.
void add_commands(Candidates& candidates, const ProgramInfo& info, std::string_view group) {
  std::string_view last;
  for (const CommandInfo& command : info.commands) {
    const std::string_view own = group_of(command.name);
    if (!group.empty()) {
      if (own == group) candidates.add(command.name.substr(own.size() + 1), command.summary);
    } else if (own.empty()) {
      candidates.add(command.name, command.summary);
    } else if (own != last) {
      candidates.add(std::string(own), "Several commands");
    }
    last = own;
  }
}

/// Candidates for the value of an option. `lead` is the text before the value in the same word (`--opt=`).
std::string complete_value(const OptionInfo& option, Shell shell, const std::string& lead,
                           const std::string& typed) {
  const std::vector<std::string>& values = option.choices.empty() ? option.suggestions : option.choices;
  if (values.empty()) {
    if (option.argument == "DIR") return ":dirs\n";
    return option.argument == "FILE" || option.argument == "PATH" ? ":files\n" : "";
  }
  // In a list, the part after the last comma is completed.
  const std::size_t comma = option.list ? typed.rfind(',') : std::string::npos;
  const std::string kept = comma == std::string::npos ? "" : typed.substr(0, comma + 1);
  // bash replaces only the text after the `=`.
  const std::string before = (shell == Shell::bash ? "" : lead) + kept;
  Candidates candidates(shell, (shell == Shell::bash ? "" : lead) + typed);
  for (const std::string& choice : values) candidates.add(before + choice, {});
  return candidates.text();
}

}  // namespace

std::optional<Shell> shell_from_name(std::string_view name) {
  if (name == "bash") return Shell::bash;
  if (name == "zsh") return Shell::zsh;
  if (name == "fish") return Shell::fish;
  return std::nullopt;
}

std::string complete(const ProgramInfo& info, Shell shell, std::vector<std::string> words) {
  if (shell == Shell::bash) words = join_at_equals(words);
  if (words.empty()) words.emplace_back();
  const CommandInfo* command = &info.program;
  const OptionInfo* pending = nullptr;  // the option whose value comes next
  std::string group;                    // the first word of a two-word name
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (std::exchange(pending, nullptr) != nullptr) continue;
    const OptionInfo* option = find_option(*command, words[i]);
    if (option != nullptr && !option->argument.empty()) pending = option;
    if (!command->name.empty() || words[i].starts_with('-')) continue;
    const std::string name = group.empty() ? words[i] : group + " " + words[i];
    for (const CommandInfo& candidate : info.commands) {
      if (candidate.name == name) command = &candidate;
    }
    if (group.empty() && is_group(info, words[i])) group = words[i];
  }

  const std::string& current = words.back();
  if (pending != nullptr && !(pending->argument_optional && current.starts_with('-'))) {
    return complete_value(*pending, shell, "", current);
  }
  if (current.starts_with('-')) {
    if (const std::size_t equals = current.find('='); equals != std::string::npos) {
      const OptionInfo* option = find_option(*command, current.substr(0, equals));
      if (option == nullptr || option->argument.empty()) return {};
      return complete_value(*option, shell, current.substr(0, equals + 1), current.substr(equals + 1));
    }
  }
  Candidates candidates(shell, current);
  if (command->name.empty() && !current.starts_with('-')) {
    add_commands(candidates, info, group);
  }
  if (!current.starts_with('-') && !command->operands.empty()) return ":files\n";
  if (current.starts_with('-') || !command->name.empty()) {
    for (const OptionInfo& option : command->options) {
      for (const std::string& name : option.names) candidates.add(name, option.help);
    }
  }
  return candidates.text();
}

std::string options_json(const ProgramInfo& info) {
  JsonWriter json({.indent = 2, .text = JsonText::utf8});
  const auto write = [&](const CommandInfo& command) {
    json.open_object();
    json.member("name", command.name);
    json.member("summary", command.summary);
    json.member("operands", command.operands);
    json.open_list("options");
    for (const OptionInfo& option : command.options) {
      json.open_object();
      json.member("names", option.names);
      json.member("argument", option.argument);
      json.member("argument_optional", option.argument_optional);
      json.member("list", option.list);
      json.member("choices", option.choices);
      json.member("suggestions", option.suggestions);
      json.member("default", option.default_value);
      json.member("group", option.group);
      json.member("help", option.help);
      json.close();
    }
    json.close();
    json.close();
  };
  json.open_object();
  json.key("program");
  write(info.program);
  json.open_list("commands");
  for (const CommandInfo& command : info.commands) write(command);
  json.close();
  json.close();
  return json.take() + "\n";
}

}  // namespace msprobe
