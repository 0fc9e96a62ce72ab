// SPDX-License-Identifier: Apache-2.0
#include "support/option_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string_view>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/output_file.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

// The names that help uses for values without a declared name.
constexpr const char* kText = "TEXT";
constexpr const char* kWhole = "UINT";
constexpr const char* kNumber = "FLOAT";

std::string with_reason(const std::string& reason) {
  return reason.empty() ? reason : ": " + reason;
}

/// "-d, -c and -vc"
std::string enumeration(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

std::string argument_text(const OptionInfo& option) {
  std::string text = option.argument;
  for (int i = 1; i < option.values; ++i) text += " " + option.argument;
  if (option.most_values < 0) text += "...";
  if (option.most_values > std::max(option.values, 1)) text += " [" + option.argument + "]";
  return option.argument_optional ? "[" + text + "]" : text;
}

Option& Option::details(const std::string& text) {
  info_->details = text;
  return *this;
}

Option& Option::default_text(const std::string& text) {
  info_->default_value = text;
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& choices) {
  info_->choices = choices;
  if (info_->argument == kText) {
    info_->argument = fmt::format("{}", fmt::join(choices, info_->list ? "," : "|"));
  }
  return check([choices](const std::string& value) {
    const bool known = std::find(choices.begin(), choices.end(), value) != choices.end();
    return known ? std::string()
                 : fmt::format("'{}' is not one of {}", display(value), fmt::join(choices, ", "));
  });
}

Option& Option::suggest(const std::vector<std::string>& values) {
  info_->suggestions = values;
  return *this;
}

Option& Option::in_range(long long least, std::optional<long long> most) {
  return check([least, most](const std::string& text) {
    const auto number = whole_number<long long>(text);
    if (number && *number >= least && (!most || *number <= *most)) return std::string();
    return fmt::format("'{}' is not a whole number from {} {}", display(text), least,
                       most ? "to " + std::to_string(*most) : "on");
  });
}

Option& Option::not_negative() {
  return check([](const std::string& text) {
    const std::optional<double> number = parse_number(text);
    return number && *number >= 0 ? std::string()
                                  : fmt::format("'{}' is not a number from 0 on", display(text));
  });
}

Option& Option::check(const std::function<std::string(const std::string&)>& problem) {
  parser_->check(problem);
  return *this;
}

Option& Option::values(int least, int most) {
  info_->values = least;
  info_->most_values = most;
  info_->argument_optional = least == 0;
  parser_->expected(least, most);
  return *this;
}

Option& Option::any_number_of_values(int least) {
  return values(least, -1);
}

Option& Option::take_all() {
  parser_->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Option& Option::commas() {
  info_->list = true;
  parser_->delimiter(',')->allow_extra_args(false);
  return *this;
}

Option& Option::group(const std::string& heading) {
  info_->group = heading;
  return *this;
}

Option& Option::manual_only() {
  info_->manual_only = true;
  return *this;
}

Option& Option::required(const std::vector<Option>& instead) {
  info_->required = true;
  for (const Option& other : instead) info_->instead.push_back(other.short_name());
  list_->rules_.emplace_back([option = *this, instead] {
    if (option.has_value() || std::ranges::any_of(instead, &Option::given)) return;
    const std::string other = instead.empty() ? "" : ", or " + instead.front().full_name();
    throw UsageError(option.full_name() + " is required" + other);
  });
  return *this;
}

Option& Option::once() {
  list_->rules_.emplace_back([option = *this] {
    if (option.parser_->count() > 1) throw UsageError(option.full_name() + " is given more than once");
  });
  return *this;
}

Option& Option::excludes(const std::vector<Option>& others, const std::string& reason) {
  for (const Option& other : others) {
    info_->excludes.push_back(other.short_name());
    other.info_->excludes.push_back(short_name());
  }
  list_->rules_.emplace_back([option = *this, others, reason] {
    if (!option.given()) return;
    for (const Option& other : others) {
      if (other.given())
        throw UsageError(fmt::format("{} and {} cannot be combined{}", option.short_name(),
                                     other.short_name(), with_reason(reason)));
    }
  });
  return *this;
}

Option& Option::needs(const Option& other, const std::string& reason) {
  list_->rules_.emplace_back([option = *this, other, reason] {
    if (option.given() && !other.given())
      throw UsageError(
          fmt::format("{} needs {}{}", option.short_name(), other.short_name(), with_reason(reason)));
  });
  return *this;
}

bool Option::given() const {
  return parser_ != nullptr && parser_->count() > 0;
}

bool Option::has_value() const {
  const std::vector<std::string>& values = parser_->results();
  return std::ranges::any_of(values, [](const std::string& value) { return !value.empty(); });
}

std::string Option::full_name() const {
  const std::vector<std::string>& names = info_->names;
  const auto full =
      std::ranges::find_if(names, [](const std::string& name) { return name.starts_with("--"); });
  return full == names.begin() || full == names.end() ? names.front() : names.front() + "/" + *full;
}

Option OptionList::declare(const std::string& names, const std::string& help,
                           const std::function<CLI::Option*(const std::string&)>& in_parser,
                           const std::string& argument) {
  OptionInfo info;
  const std::size_t equals = names.find('=');
  info.argument_optional = equals != std::string::npos && names[equals - 1] == '[';
  // Not by std::getline(), which takes a lack of memory for the end of the text.
  const std::string_view listed =
      std::string_view(names).substr(0, equals - (info.argument_optional ? 1 : 0));
  for (const std::string_view name : split(listed, ",")) info.names.emplace_back(name);
  info.argument = argument;
  if (equals != std::string::npos) {
    info.argument = names.substr(equals + 1);
    if (info.argument_optional) info.argument.pop_back();
  }
  info.values = info.argument.empty() || info.argument_optional ? 0 : 1;
  info.most_values = info.argument.empty() ? 0 : 1;
  info.help = help;
  info.group = kOptionsGroup;

  // The parser has no short names with several letters.
  std::vector<std::string> known;
  for (const std::string& name : info.names) {
    if (name.size() <= 2 || name[0] != '-' || name[1] == '-') known.push_back(name);
  }
  CLI::Option* const parser = in_parser(fmt::format("{}", fmt::join(known, ",")));
  if (info.argument_optional && !parser->get_positional()) parser->expected(0, 1);
  std::deque<OptionInfo>& kept = parser->get_positional() ? operands_ : options_;
  return Option(this, parser, &kept.emplace_back(std::move(info)));
}

Option OptionList::add(const std::string& names, std::string& value, const std::string& help) {
  Option option = add(
      names,
      [&value](const std::string& typed) {
        if (!typed.empty()) value = typed;
      },
      help);
  return option.default_text(value);
}

Option OptionList::add(const std::string& names, std::vector<std::string>& values, const std::string& help) {
  return declare(
      names, help, [&](const std::string& known) { return app_.add_option(known, values, help); }, kText);
}

// The parser's message for a wrong number changes with its version, and it reads -3 as 2^64 - 3.
Option OptionList::add(const std::string& names, std::size_t& value, const std::string& help) {
  Option option = declare(
      names, help, [&](const std::string& known) { return app_.add_option(known, value, help); }, kWhole);
  if (value != 0) option.default_text(std::to_string(value));
  return option.check([](const std::string& text) {
    return whole_number<std::size_t>(text)
               ? std::string()
               : fmt::format("'{}' is not a whole number from 0 on", display(text));
  });
}

Option OptionList::add(const std::string& names, double& value, const std::string& help) {
  Option option = declare(
      names, help, [&](const std::string& known) { return app_.add_option(known, value, help); }, kNumber);
  if (value != 0) option.default_text(fmt::format("{}", value));
  return option.check([](const std::string& text) {
    return parse_number(text) ? std::string() : fmt::format("'{}' is not a number", display(text));
  });
}

Option OptionList::add(const std::string& names, const std::function<void(const std::string&)>& take,
                       const std::string& help) {
  return declare(
      names, help,
      [&](const std::string& known) { return app_.add_option_function<std::string>(known, take, help); },
      kText);
}

Option OptionList::add_list_of(const std::string& names,
                               const std::function<void(const std::vector<std::string>&)>& take,
                               const std::vector<std::string>& choices, const std::string& help) {
  Option option = declare(
      names, help,
      [&](const std::string& known) {
        return app_.add_option_function<std::vector<std::string>>(known, take, help);
      },
      kText);
  return option.commas().one_of(choices);
}

Option OptionList::add_flag(const std::string& names, bool& value, const std::string& help) {
  return declare(
      names, help, [&](const std::string& known) { return app_.add_flag(known, value, help); }, "");
}

Option OptionList::add_flag(const std::string& names, const std::function<void(int)>& take,
                            const std::string& help) {
  return declare(
      names, help,
      [&](const std::string& known) {
        return app_.add_flag_function(
            known, [take](std::int64_t times) { take(static_cast<int>(times)); }, help);
      },
      "");
}

Option OptionList::add_overwrite(Existing& existing) {
  return add_flag(
      "--overwrite", [&existing](int times) { existing = times > 0 ? Existing::replace : Existing::refuse; },
      "Replace result files that exist");
}

Option OptionList::add_help(const std::string& names, const std::string& help) {
  return declare(
      names, help, [&](const std::string& known) { return app_.set_help_flag(known, help); }, "");
}

void report_without_effect(std::string_view command, std::string_view option, std::string_view where) {
  if (team().is_root()) log_info(fmt::format("msprobe {}: {} has no effect{}", command, option, where));
}

void OptionList::add_pair(std::string& first, std::string& second, const std::string& argument,
                          const std::string& what, const std::string& help) {
  add("first=" + argument + "1", first, help);
  add("second=" + argument + "2", second, "The second one");
  rules_.emplace_back([&first, &second, what] {
    if (!second.empty()) return;
    throw UsageError((first.empty() ? "" : "'" + display(first) + "' alone: ") + what + " are needed");
  });
}

void OptionList::require_one_of(const std::vector<Option>& options) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    options[i].info_->alternative = true;
    Option(options[i]).excludes({options.begin() + static_cast<std::ptrdiff_t>(i) + 1, options.end()});
  }
  rules_.emplace_back([options] {
    std::vector<std::string> names;
    for (const Option& option : options) {
      if (option.given()) return;
      names.push_back(option.short_name());
    }
    throw UsageError("one of " + enumeration(names) + " is required");
  });
}

void OptionList::arrange(const std::vector<std::pair<std::string, std::vector<std::string>>>& groups) {
  for (OptionInfo& option : options_) {
    for (const auto& [heading, names] : groups) {
      if (std::ranges::find(names, option.names.front()) != names.end()) option.group = heading;
    }
  }
}

void OptionList::check_rules() const {
  for (const std::function<void()>& rule : rules_) rule();
}

}  // namespace msprobe
