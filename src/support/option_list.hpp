// SPDX-License-Identifier: Apache-2.0
// How a command declares its options and binds them to its members. The parser behind it stays in this
// folder.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace msprobe {

/// One option. Copies are the same option; one that was not declared is not given.
class Option {
 public:
  Option() = default;

  /// What help calls the value. FILE, DIR and PATH are completed as file names.
  Option& argument(const std::string& name);
  /// Help tells the value that the member has now.
  Option& show_default();
  /// Help tells this as the default.
  Option& default_text(const std::string& text);
  /// The only values accepted.
  Option& one_of(const std::vector<std::string>& choices);
  /// Values that are completed; others are accepted, too.
  Option& suggest(const std::vector<std::string>& values);
  Option& in_range(int least, int most);
  Option& not_negative();
  /// `problem` gives an explanation for a value that is refused, else an empty text.
  Option& check(const std::function<std::string(const std::string& value)>& problem);
  /// How many values follow.
  Option& values(int least, int most);
  Option& any_number_of_values(int least);
  /// The values of all occurrences count, not those of the last one.
  Option& take_all();
  /// A value may be a list with commas.
  Option& commas();
  /// A word that follows such a list does not belong to it.
  Option& one_word();
  /// The heading in the help text.
  Option& group(const std::string& heading);

  bool given() const;

 private:
  friend class OptionList;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_ = nullptr;
};

/// The options of a command. `names` is a list such as "-o,--output_path"; a name without dashes is an
/// operand.
class OptionList {
 public:
  explicit OptionList(CLI::App& app) : app_(app) {}

  Option add(const std::string& names, std::string& value, const std::string& help);
  Option add(const std::string& names, std::vector<std::string>& values, const std::string& help);
  Option add(const std::string& names, std::size_t& value, const std::string& help);
  Option add(const std::string& names, double& value, const std::string& help);
  Option add(const std::string& names, const std::function<void(const std::string& value)>& take,
             const std::string& help);
  Option add_flag(const std::string& names, bool& value, const std::string& help);
  Option add_flag(const std::string& names, const std::function<void(int times)>& take,
                  const std::string& help);

 private:
  CLI::App& app_;
};

}  // namespace msprobe
