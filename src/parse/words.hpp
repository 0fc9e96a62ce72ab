// SPDX-License-Identifier: Apache-2.0
// Parses the options of a shell command, as the Python tool spelled them: `-out DIR`, `--output_path=DIR`.
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

/// The words of a line, separated by blanks; there is no quoting.
std::vector<std::string> split_words(std::string_view line);

/// Passes each option's value to its `set`, without quotes around it. UsageError for unknown, missing or
/// surplus words. False if help was requested; the other words are not checked then.
bool read_options(const std::vector<std::string>& words, const std::vector<WordOption>& options);

/// One line for the command and one for each option.
std::string usage_text(std::string_view command, const std::vector<WordOption>& options);

/// The number in an option's value; UsageError if it is not a number, or is negative.
double read_tolerance(std::string_view option, const std::string& text);
/// The same for a count of at least 1.
std::size_t read_count(std::string_view option, const std::string& text);

}  // namespace msprobe::parse
