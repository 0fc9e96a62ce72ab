// SPDX-License-Identifier: Apache-2.0
#include "support/option_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <system_error>

#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe {

Option& Option::argument(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::default_text(const std::string& text) {
  option_->default_str(text);
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& choices) {
  option_->check(CLI::IsMember(choices));
  return *this;
}

Option& Option::suggest(const std::vector<std::string>& values) {
  // A check that refuses nothing: its description is the only room that the parser has for them.
  const auto any = [](std::string& /*value*/) { return std::string(); };
  option_->check(CLI::Validator(any, fmt::format("~{{{}}}", fmt::join(values, ","))));
  return *this;
}

Option& Option::in_range(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::not_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option& Option::check(const std::function<std::string(const std::string&)>& problem) {
  option_->check(problem);
  return *this;
}

Option& Option::values(int least, int most) {
  option_->expected(least, most);
  return *this;
}

Option& Option::any_number_of_values(int least) {
  option_->expected(least, -1);
  return *this;
}

Option& Option::take_all() {
  option_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Option& Option::commas() {
  option_->delimiter(',');
  return *this;
}

Option& Option::one_word() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

bool Option::given() const {
  return option_ != nullptr && option_->count() > 0;
}

Option OptionList::add(const std::string& names, std::string& value, const std::string& help) {
  return Option(app_.add_option(names, value, help));
}

Option OptionList::add(const std::string& names, std::vector<std::string>& values, const std::string& help) {
  return Option(app_.add_option(names, values, help));
}

// The parser's own wording for what is no number changes with its version, and it takes -3 for 2^64 - 3.
Option OptionList::add(const std::string& names, std::size_t& value, const std::string& help) {
  CLI::Option* const option = app_.add_option(names, value, help);
  option->check([](const std::string& text) {
    return whole_number<std::size_t>(text) ? std::string()
                                           : fmt::format("'{}' is not a whole number from 0 on", text);
  });
  return Option(option);
}

Option OptionList::add(const std::string& names, double& value, const std::string& help) {
  CLI::Option* const option = app_.add_option(names, value, help);
  option->check([](const std::string& text) {
    return parse_number(text) ? std::string() : fmt::format("'{}' is not a number", text);
  });
  return Option(option);
}

Option OptionList::add(const std::string& names, const std::function<void(const std::string&)>& take,
                       const std::string& help) {
  return Option(app_.add_option_function<std::string>(names, take, help));
}

Option OptionList::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Option(app_.add_flag(names, value, help));
}

Option OptionList::add_flag(const std::string& names, const std::function<void(int)>& take,
                            const std::string& help) {
  return Option(app_.add_flag_function(
      names, [take](std::int64_t times) { take(static_cast<int>(times)); }, help));
}

}  // namespace msprobe
