// SPDX-License-Identifier: Apache-2.0
#include "support/manual_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace msprobe {
namespace {

/// The text in a font (B or I), escaped so that roff prints it unchanged.
std::string in_font(char font, std::string_view text) {
  std::string out = fmt::format("\\f{}", font);
  for (const char c : text) {
    if (c == '-') out += '\\';  // else it may become another kind of dash
    out += c == '\\' ? "\\e" : std::string(1, c);
  }
  return out + "\\fR";
}

std::string bold(std::string_view text) {
  return in_font('B', text);
}

/// "a, b or c", in bold.
std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += bold(names[i]);
  }
  return text;
}

/// The length of the option's name at the start of `text`; 0 without one.
std::size_t option_length(std::string_view text) {
  const std::size_t letter = text.find_first_not_of('-');
  if (letter == 0 || letter > 2 || letter == std::string_view::npos ||
      std::isalpha(static_cast<unsigned char>(text[letter])) == 0)
    return 0;
  const auto end = std::ranges::find_if(
      text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_'; });
  return static_cast<std::size_t>(end - text.begin());
}

/// Converts text of Option::details() to roff. Names of options are bold.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool word = at == 0 || std::string_view(" (\n").find(text[at - 1]) != std::string_view::npos;
    if (const std::size_t length = word ? option_length(text.substr(at)) : 0; length > 0) {
      out += bold(text.substr(at, length));
      at += length;
      continue;
    }
    const char closing = c == '`' ? '`' : c == '<' ? '>' : '\0';
    if (const std::size_t end = closing == '\0' ? std::string_view::npos : text.find(closing, at + 1);
        end != std::string_view::npos) {
      out += in_font(c == '`' ? 'B' : 'I', text.substr(at + 1, end - at - 1));
      at = end + 1;
      continue;
    }
    if (text.substr(at).starts_with("\n\n")) {
      out += "\n.IP\n";
      at += 2;
      continue;
    }
    if (c == '.' && word) out += "\\&";  // else a line that begins with a dot is a command
    out += c;
    ++at;
  }
  return out;
}

std::string as_sentence(std::string_view text) {
  return roff(text) + (text.ends_with('.') || text.ends_with('?') ? "\n" : ".\n");
}

/// The words of an argument or a synopsis: options and fixed words are bold, placeholders are in italics.
std::string marked(std::string_view text, char font) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t length = option_length(text.substr(at)); length > 0) {
      out += bold(text.substr(at, length));
      at += length;
      continue;
    }
    const auto part_of_word = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    };
    std::size_t end = at;
    while (end < text.size() && part_of_word(text[end])) ++end;
    out += end == at ? std::string(1, text[at]) : in_font(font, text.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return out;
}

std::string heading(const OptionInfo& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  const std::string argument = argument_text(option);
  return fmt::format("{}{}{}", fmt::join(names, ", "), argument.empty() ? "" : " ",
                     marked(argument, option.choices.empty() ? 'I' : 'B'));
}

std::string entry(const OptionInfo& option) {
  std::string text = ".TP\n" + heading(option) + "\n" + as_sentence(option.help);
  if (!option.details.empty()) text += as_sentence(option.details);
  const std::string& value = option.default_value;
  if (!value.empty())
    text += "Default: " + (value.find(' ') == std::string::npos ? bold(value) : roff(value)) + ".\n";
  if (!option.excludes.empty()) text += "Not with " + alternatives(option.excludes) + ".\n";
  return text;
}

std::string options_of(const CommandInfo& command) {
  std::string text;
  std::string group = kOptionsGroup;
  for (const OptionInfo& option : command.options) {
    if (option.group != group) {
      group = option.group;
      if (!text.empty()) text += ".SS " + group + "\n";
      if (group == kGlobalGroup) text += "These stand before or after the command.\n";
    }
    text += entry(option);
  }
  return text;
}

std::string synopsis_of(const CommandInfo& command) {
  std::string text;
  for (const std::string& line : synopsis(command)) {
    if (!text.empty()) text += ".br\n";
    text += bold("msprobe " + command.name) + marked(line, 'I') + "\n";
  }
  return text;
}

/// The commands whose names begin with `group`, without that word; all commands if it is empty.
std::string commands_of(const ProgramInfo& info, std::string_view group) {
  std::string text;
  for (const CommandInfo& command : info.commands) {
    if (!group.empty() && group_of(command.name) != group) continue;
    const std::string_view name = std::string_view(command.name).substr(group.empty() ? 0 : group.size() + 1);
    std::string page = command.name;
    std::replace(page.begin(), page.end(), ' ', '-');
    text += fmt::format(".TP\n{}\n{}; see\n.BR msprobe-{} (1).\n", bold(name), command.summary, page);
  }
  return text;
}

}  // namespace

std::string fill_page(const ProgramInfo& info, std::string_view command, std::istream& page) {
  const auto found =
      std::ranges::find_if(info.commands, [&](const CommandInfo& each) { return each.name == command; });
  const CommandInfo& described = found == info.commands.end() ? info.program : *found;
  std::string out;
  for (std::string line; std::getline(page, line);) {
    out += line == ".\\\" SYNOPSIS"   ? synopsis_of(described)
           : line == ".\\\" OPTIONS"  ? options_of(described)
           : line == ".\\\" COMMANDS" ? commands_of(info, command)
                                      : line + "\n";
  }
  return out;
}

}  // namespace msprobe
