// SPDX-License-Identifier: Apache-2.0
#include "support/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

constexpr std::size_t kFarName = 3;  // a name with this many wrong letters is no typing error

bool is_framework(std::string_view word) {
  return word == "pytorch" || word == "mindspore";
}

bool is_flag(const OptionInfo& option) {
  return option.argument.empty();
}

std::vector<std::string> long_names(const OptionInfo& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    if (name.starts_with("--")) names.push_back(name);
  }
  return names;
}

/// Reads the words once; `scope_` is the program until the command's name has been read.
class Rewriter {
 public:
  Rewriter(const std::vector<std::string>& in, const ProgramInfo& program)
      : in_(in), program_(program), scope_(&program.program) {}

  RewrittenArguments run() {
    for (; next_ < in_.size();) {
      const std::string& word = in_[next_++];
      if (word == "--") {
        out_.push_back(word);
        out_.insert(out_.end(), in_.begin() + static_cast<std::ptrdiff_t>(next_), in_.end());
        break;
      }
      if (word.size() < 2 || word[0] != '-') {
        operand(word);
      } else {
        option(word);
      }
    }
    return {std::move(out_), in_command() ? std::string() : group_};
  }

 private:
  bool in_command() const { return scope_ != &program_.program; }

  void operand(const std::string& word) {
    if (in_command()) {
      out_.push_back(word);
      return;
    }
    const std::string name = group_.empty() ? word : group_ + " " + word;
    const CommandInfo* command = find_command(name);
    if (command == nullptr && group_.empty() && is_group(program_, word)) {
      group_ = word;
      return;
    }
    if (command == nullptr) throw unknown_command(name);
    scope_ = command;
    out_.push_back(parser_name(command->name));
  }

  const CommandInfo* find_command(const std::string& word) const {
    for (const CommandInfo& command : program_.commands) {
      const std::vector<std::string>& others = command.other_names;
      if (command.name == word || std::find(others.begin(), others.end(), word) != others.end())
        return &command;
    }
    return nullptr;
  }

  /// The option's name in the parser, or an empty string.
  std::string long_form(const std::string& name) const {
    // The parser has no short names with several letters.
    if (name.size() > 2 && name[1] != '-') {
      const OptionInfo* option = find(name);
      return option == nullptr ? std::string() : long_names(*option).front();
    }
    if (find(name) != nullptr) return name;
    if (name.size() > 3) {
      std::string swapped = name;
      std::replace(swapped.begin() + 2, swapped.end(), '-', '_');
      if (find(swapped) != nullptr) return swapped;
      swapped = name;
      std::replace(swapped.begin() + 2, swapped.end(), '_', '-');
      if (find(swapped) != nullptr) return swapped;
    }
    return abbreviated(name);
  }

  /// The long option that begins with these letters, as Python's argparse finds it; else an empty string.
  std::string abbreviated(const std::string& name) const {
    if (name.size() < 3 || !name.starts_with("--")) return {};
    const auto plain = [](std::string text) {
      std::replace(text.begin(), text.end(), '-', '_');
      return text;
    };
    const std::string start = plain(name.substr(2));
    std::vector<std::string> candidates;
    for (const OptionInfo& option : scope_->options) {
      for (const std::string& full : long_names(option)) {
        if (plain(full.substr(2)).starts_with(start)) candidates.push_back(full);
      }
    }
    if (candidates.size() > 1) {
      throw UsageError(fmt::format("option {} could be {}", display(name), fmt::join(candidates, ", ")),
                       help_hint());
    }
    return candidates.empty() ? std::string() : candidates.front();
  }

  const OptionInfo* find(const std::string& name) const {
    for (const OptionInfo& option : scope_->options) {
      if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) return &option;
    }
    return nullptr;
  }

  void option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string typed = word.substr(0, equals);
    if (typed == "-f" && equals == std::string::npos && in_command() &&
        (next_ == in_.size() || !is_framework(in_[next_]))) {
      if (next_ < in_.size() && !in_[next_].starts_with('-')) throw unknown_framework(in_[next_]);
      short_flag();
      return;
    }
    // The Python tool's acc_check has -j for --jit_compile; -j means jobs only if a number follows.
    if (typed == "-j" && equals == std::string::npos && find("--jit_compile") != nullptr &&
        (next_ == in_.size() || !is_digits(in_[next_]))) {
      out_.emplace_back("--jit_compile");
      return;
    }
    if (const std::string name = long_form(typed); !name.empty()) {
      known_option(typed, name, equals == std::string::npos ? nullptr : &word, equals);
      return;
    }
    if (word[1] == '-' || !cluster(word)) throw unknown_option(typed);
  }

  /// Resolves -f if no framework follows.
  void short_flag() {
    if (find("--filter_api") != nullptr) {
      out_.emplace_back("--filter_api");
      return;
    }
    if (find("--fuzzy_match") == nullptr) {
      throw UsageError(
          "-f must be followed by pytorch or mindspore: --fuzzy_match, which -f means otherwise, "
          "is not available",
          help_hint());
    }
    out_.emplace_back("--fuzzy_match");
  }

  void known_option(const std::string& typed, const std::string& name, const std::string* word,
                    std::size_t equals) {
    const OptionInfo& option = *find(name);
    const bool flag = is_flag(option);
    if (word != nullptr) {
      const std::string value = word->substr(equals + 1);
      if (flag) throw UsageError(fmt::format("option {} takes no value", typed), help_hint());
      if (value.empty()) throw UsageError(fmt::format("option {} has an empty value", typed), help_hint());
      if (const auto longs = long_names(option); !longs.empty()) {
        out_.push_back(longs.front() + "=" + value);
      } else {
        out_.push_back(name + value);
      }
      return;
    }
    out_.push_back(name);
    if (!flag) take_values(typed, option.values);
  }

  /// Copies the values that an option must have, whatever they look like.
  void take_values(const std::string& typed, int count) {
    for (int i = 0; i < count; ++i) {
      if (next_ == in_.size()) throw UsageError(fmt::format("option {} needs a value", typed), help_hint());
      const std::string& value = in_[next_++];
      if (value.size() > 1 && value[0] == '-' && !long_form(value.substr(0, value.find('='))).empty()) {
        throw UsageError(
            fmt::format("option {} needs a value, but the option {} follows", typed, display(value)),
            fmt::format("give a value that begins with a dash as {}=VALUE", typed));
      }
      out_.push_back(value);
    }
  }

  /// Splits single-letter options that are written together, the last one perhaps with its value: -vq, -j4.
  bool cluster(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const std::string name = {'-', word[i]};
      const OptionInfo* option = find(name);
      if (option == nullptr) return false;
      if (is_flag(*option)) continue;
      out_.push_back(word);
      if (i + 1 == word.size()) take_values(name, option->values);
      return true;
    }
    out_.push_back(word);
    return true;
  }

  std::string help_hint() const {
    return in_command() ? fmt::format("try 'msprobe {} --help'", scope_->name) : "try 'msprobe --help'";
  }

  std::string proposal(const std::vector<std::string_view>& known, std::string_view typed) const {
    const std::string_view best = nearest_of(known, typed, kFarName);
    return best.empty() ? help_hint() : fmt::format("did you mean {}? {}", best, help_hint());
  }

  UsageError unknown_framework(const std::string& word) const {
    return UsageError(fmt::format("-f: '{}' must be pytorch or mindspore", display(word)), help_hint());
  }

  UsageError unknown_command(const std::string& word) const {
    const std::string message = fmt::format("unknown command '{}'", display(word));
    for (const AbsentCommand& absent : program_.absent) {
      if (absent.name == word) return UsageError(message, absent.instead);
    }
    std::vector<std::string_view> names;
    for (const CommandInfo& command : program_.commands) names.push_back(command.name);
    return UsageError(message, proposal(names, word));
  }

  UsageError unknown_option(const std::string& typed) const {
    const std::string message = fmt::format("unknown option '{}'", display(typed));
    // The Python tool's options have one dash, so that --gp means -gp and not the nearer --tp.
    const std::string one_dash = typed.substr(1);
    if (find(one_dash) != nullptr)
      return UsageError(message, fmt::format("did you mean {}? {}", one_dash, help_hint()));
    std::vector<std::string> names;
    for (const OptionInfo& option : scope_->options) {
      for (std::string& name : long_names(option)) names.push_back(std::move(name));
    }
    return UsageError(message, proposal({names.begin(), names.end()}, typed));
  }

  const std::vector<std::string>& in_;
  const ProgramInfo& program_;
  const CommandInfo* scope_;
  std::string group_;  // the first word of a two-word command that was read before the second
  std::size_t next_ = 0;
  std::vector<std::string> out_;
};

}  // namespace

std::string parser_name(std::string_view command) {
  std::string name(command);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

RewrittenArguments rewrite_arguments(const std::vector<std::string>& arguments, const ProgramInfo& program) {
  return Rewriter(arguments, program).run();
}

}  // namespace msprobe
