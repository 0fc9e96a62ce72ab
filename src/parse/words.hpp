// SPDX-License-Identifier: Apache-2.0
// The options of a shell command, as the Python tool spelled them: `-out DIR`, `--output_path=DIR`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::parse {

struct WordOption {
  std::string_view name;       // "-out"
  std::string_view long_name;  // "--output_path"
  std::string_view argument;   // "DIR"; empty: a flag
  bool required = false;
  std::string_view help;
  std::function<void(const std::string&)> set;
};

/// The words of a line; blanks part them and nothing quotes.
std::vector<std::string> split_words(std::string_view line);

/// Hands each option's value to its `set`; quotes around a value are taken off. UsageError for what is
/// unknown, missing or too much. False if help was asked for, and then nothing else is looked at.
bool read_options(const std::vector<std::string>& words, const std::vector<WordOption>& options);

/// One line for the command and one for each option.
std::string usage_text(std::string_view command, const std::vector<WordOption>& options);

/// A number out of an option's value; UsageError if it is none or negative.
double read_tolerance(std::string_view option, const std::string& text);
/// The same for a count of at least 1.
std::size_t read_count(std::string_view option, const std::string& text);

}  // namespace msprobe::parse
