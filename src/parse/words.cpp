// SPDX-License-Identifier: Apache-2.0
#include "parse/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";
constexpr std::size_t kMostRows = 1'000'000;

std::string without_quotes(const std::string& text) {
  constexpr std::string_view kQuotes = "'\"";
  const std::size_t begin = text.find_first_not_of(kQuotes);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kQuotes) - begin + 1);
}

}  // namespace

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string_view word : split(line, kBlanks)) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

bool read_options(const std::vector<std::string>& words, const std::vector<WordOption>& options) {
  if (std::ranges::any_of(words, [](const auto& w) { return w == "-h" || w == "--help"; })) return false;
  std::vector<bool> given(options.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
    const std::string name = words[i].substr(0, equals);
    const auto option = std::ranges::find_if(
        options, [&](const WordOption& known) { return known.name == name || known.long_name == name; });
    if (option == options.end()) {
      throw UsageError((name.starts_with('-') ? "unknown option " : "unexpected word ") + display(name));
    }
    std::string value;
    if (option->argument.empty()) {
      if (equals != std::string::npos) throw UsageError(fmt::format("option {} takes no value", name));
    } else if (equals != std::string::npos) {
      value = words[i].substr(equals + 1);
    } else {
      if (++i == words.size()) throw UsageError(fmt::format("option {} needs a value", name));
      value = words[i];
    }
    given[static_cast<std::size_t>(option - options.begin())] = true;
    option->set(without_quotes(value));
  }
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i].required && !given[i])
      throw UsageError(fmt::format("option {} is required", options[i].name));
  }
  return true;
}

std::string usage_text(std::string_view command, const std::vector<WordOption>& options) {
  std::string line = fmt::format("usage: {}", command);
  std::string rest;
  for (const WordOption& option : options) {
    std::string word(option.name);
    if (!option.argument.empty()) word += fmt::format(" {}", option.argument);
    line += option.required ? " " + word : " [" + word + "]";
    rest += fmt::format("  {:<14}{:<22}{}\n", word, option.long_name, option.help);
  }
  return line + "\n" + rest;
}

double read_tolerance(std::string_view option, const std::string& text) {
  const std::optional<double> value = parse_number(text);
  if (!value || !std::isfinite(*value) || *value < 0) {
    throw UsageError(fmt::format("option {}: {} is not a number of 0 or more", option, display(text)));
  }
  return *value;
}

std::size_t read_count(std::string_view option, const std::string& text) {
  const auto value = whole_number<std::size_t>(text);
  if (!value || *value == 0 || *value > kMostRows)
    throw UsageError(
        fmt::format("option {}: {} is not a whole number from 1 to {}", option, display(text), kMostRows));
  return *value;
}

}  // namespace msprobe::parse
