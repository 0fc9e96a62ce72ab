// SPDX-License-Identifier: Apache-2.0
// Declares the options of a command, binds them to its members, and states which exclude each other. Help,
// completion and manual pages read the declarations; only this folder uses the parser.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace msprobe {

enum class Existing : std::uint8_t;

/// Prints one line: `option` changes nothing (`where` names the condition, such as " with -da").
void report_without_effect(std::string_view command, std::string_view option, std::string_view where = "");

struct OptionInfo {
  std::vector<std::string> names;        // as typed, short ones first: "-tp", "--target_path"
  std::string argument;                  // the name of its value in help, e.g. "FILE"; empty: a flag
  bool argument_optional = false;        // the value may be left out
  int values = 0;                        // how many must follow; 0 if it may have none
  int most_values = 0;                   // how many may follow; negative: any number
  bool list = false;                     // the value may be a list with commas
  std::vector<std::string> choices;      // the only values accepted; empty: any
  std::vector<std::string> suggestions;  // values that are completed; others are accepted, too
  std::string default_value;             // empty if none, or if the help states it
  std::string help;                      // one line
  std::string details;                   // further text for the manual page
  std::string group;                     // heading in the help text
  std::vector<std::string> excludes;     // short names of options that it excludes
  bool required = false;
  std::vector<std::string> instead;  // short names of options that may replace it if it is required
  bool alternative = false;          // one of several options, of which one is required
  bool manual_only = false;          // not in the help text
};

/// The text after its name: "FILE", "[DIR]", "PATH PATH"; empty for a flag.
std::string argument_text(const OptionInfo& option);

inline constexpr const char* kOptionsGroup = "Options";  // for options without a group

/// Values of T with their names.
template <typename T>
using Choices = std::vector<std::pair<std::string, T>>;

class OptionList;

/// One option. Copies refer to the same option; an undeclared one counts as not given.
class Option {
 public:
  Option() = default;

  /// Text that the manual page adds to the line of help: one sentence per line, an empty line between
  /// paragraphs. `x` is printed bold, <x> in italics; names of options become bold automatically.
  Option& details(const std::string& text);
  /// The default that help shows. Otherwise help shows the value of the member at the declaration, unless
  /// that is empty, 0 or a list.
  Option& default_text(const std::string& text);
  /// The only values accepted.
  Option& one_of(const std::vector<std::string>& choices);
  /// Values that are completed; others are accepted, too.
  Option& suggest(const std::vector<std::string>& values);
  /// A whole number; without `most`, up to the largest that the member can hold.
  Option& in_range(long long least, std::optional<long long> most = {});
  Option& not_negative();
  /// `problem` explains why a value is rejected, or returns an empty text.
  Option& check(const std::function<std::string(const std::string& value)>& problem);
  /// The number of values that follow.
  Option& values(int least, int most);
  Option& any_number_of_values(int least);
  /// Collects the values of all occurrences instead of the last one.
  Option& take_all();
  /// A value may be a list with commas.
  Option& commas();
  /// The heading in the help text.
  Option& group(const std::string& heading);
  /// For rare options: only the manual page describes it, not the help text.
  Option& manual_only();

  // Rules between options. They are checked in the order of their declaration after all words are read;
  // `reason` follows the message.
  /// Throws UsageError without a value, unless one of `instead` is given; help names the first of these.
  Option& required(const std::vector<Option>& instead = {});
  /// Throws UsageError if it is given twice, because it is unclear which one is meant.
  Option& once();
  Option& excludes(const std::vector<Option>& others, const std::string& reason = {});
  Option& needs(const Option& other, const std::string& reason = {});

  bool given() const;
  /// "-tp/--target_path"
  std::string full_name() const;

 private:
  friend class OptionList;
  Option(OptionList* list, CLI::Option* parser, OptionInfo* info)
      : list_(list), parser_(parser), info_(info) {}

  /// The name in messages about two options: "-tp".
  const std::string& short_name() const { return info_->names.front(); }
  bool has_value() const;

  OptionList* list_ = nullptr;
  CLI::Option* parser_ = nullptr;
  OptionInfo* info_ = nullptr;
};

/// The options of a command. `names` is a list such as "-o,--output_path=DIR", with the name of the value in
/// help; FILE, DIR and PATH are completed as file names. "[=DIR]": the value may be left out. A name without
/// dashes is an operand.
class OptionList {
 public:
  explicit OptionList(CLI::App& app) : app_(app) {}
  OptionList(const OptionList&) = delete;
  OptionList& operator=(const OptionList&) = delete;

  /// An empty value leaves the member as it is.
  Option add(const std::string& names, std::string& value, const std::string& help);
  Option add(const std::string& names, std::vector<std::string>& values, const std::string& help);
  Option add(const std::string& names, std::size_t& value, const std::string& help);
  Option add(const std::string& names, double& value, const std::string& help);
  Option add(const std::string& names, const std::function<void(const std::string& value)>& take,
             const std::string& help);
  Option add_flag(const std::string& names, bool& value, const std::string& help);
  Option add_flag(const std::string& names, const std::function<void(int times)>& take,
                  const std::string& help);
  /// Adds --overwrite, for commands that receive the names of their results.
  Option add_overwrite(Existing& existing);
  Option add_help(const std::string& names, const std::string& help);

  /// One of `choices`.
  template <typename T>
  Option add(const std::string& names, T& value, const Choices<T>& choices, const std::string& help) {
    Option option = add(
        names, [&value, choices](const std::string& name) { value = chosen(choices, name); }, help);
    option.one_of(names_of(choices));
    for (const auto& [name, choice] : choices) {
      if (choice == value) option.default_text(name);
    }
    return option;
  }

  /// Any of `choices`, separated by commas; each counts once.
  template <typename T>
  Option add_list(const std::string& names, std::vector<T>& values, const Choices<T>& choices,
                  const std::string& help) {
    return add_list_of(
        names,
        [&values, choices](const std::vector<std::string>& typed) {
          values.clear();
          for (const std::string& name : typed) {
            const T value = chosen(choices, name);
            if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
          }
        },
        names_of(choices), help);
  }

  /// Adds two operands; a message calls them `what` ("two checkpoints") if one is missing.
  void add_pair(std::string& first, std::string& second, const std::string& argument, const std::string& what,
                const std::string& help);
  /// Requires exactly one of these options.
  void require_one_of(const std::vector<Option>& options);

  /// Sets the headings of the help text, each with the first names of its options, which must be declared
  /// before.
  void arrange(const std::vector<std::pair<std::string, std::vector<std::string>>>& groups);

  /// The options, and the operands, in the order of their declaration.
  const std::deque<OptionInfo>& options() const { return options_; }
  const std::deque<OptionInfo>& operands() const { return operands_; }

  /// Throws UsageError for options that exclude each other. Called after parsing.
  void check_rules() const;

 private:
  friend class Option;

  template <typename T>
  static std::vector<std::string> names_of(const Choices<T>& choices) {
    std::vector<std::string> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    return names;
  }
  /// The value for `name`, which is one of the choices.
  template <typename T>
  static T chosen(const Choices<T>& choices, std::string_view name) {
    return std::ranges::find_if(choices, [&](const auto& each) { return each.first == name; })->second;
  }

  Option declare(const std::string& names, const std::string& help,
                 const std::function<CLI::Option*(const std::string& names)>& in_parser,
                 const std::string& argument);
  Option add_list_of(const std::string& names,
                     const std::function<void(const std::vector<std::string>& values)>& take,
                     const std::vector<std::string>& choices, const std::string& help);

  CLI::App& app_;
  std::deque<OptionInfo> options_;  // options refer to them
  std::deque<OptionInfo> operands_;
  std::vector<std::function<void()>> rules_;
};

}  // namespace msprobe
