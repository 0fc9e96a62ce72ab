// SPDX-License-Identifier: Apache-2.0
#include "pack/shell_words.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

constexpr std::size_t kMostDepth = 32;  // for ${A:-${B:-…}}, and for references to references
constexpr std::size_t kMostExpanded = std::size_t{16} << 20;  // text that a script may make of its variables
constexpr std::string_view kBlanks = " \t\n\r";
constexpr std::string_view kWordEnds = " \t\r\n;&|()<>";
constexpr std::string_view kSpecial = "\\'\"$`";
constexpr std::string_view kSpecialOrEnd = "\\'\"$` \t\r\n;&|()<>";

bool contains(std::string_view set, char c) {
  return set.find(c) != std::string_view::npos;
}

}  // namespace

std::size_t ShellWords::name_size(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() &&
         (is_letter(text[size]) || text[size] == '_' || (size != 0 && is_digit(text[size]))))
    ++size;
  return size;
}

std::string& ShellWords::Fields::last() {
  if (!open) list.emplace_back();
  open = true;
  return list.back();
}

void ShellWords::Fields::add(std::string_view text, bool quoted) {
  if (quoted || !splits) {
    last() += text;
    return;
  }
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    if (begin != 0) open = false;
    if (begin != end) last() += text.substr(begin, end - begin);
    text.remove_prefix(end);
  }
}

bool ShellWords::joins_lines() {
  const std::size_t size = rest().starts_with("\\\n") ? 2 : rest().starts_with("\\\r\n") ? 3 : 0;
  advance(size);
  return size != 0;
}

void ShellWords::skip_blanks() {
  while (true) {
    if (joins_lines()) continue;
    if (peek() == '\n' || !contains(kBlanks, peek())) return;
    advance();
  }
}

void ShellWords::skip_line() {
  at_ = std::min(text_.find('\n', at_), end_);
}

void ShellWords::skip_pair(char open, char close, bool quoted) {
  std::size_t depth = 0;
  char quote = 0;
  for (; !at_end(); advance()) {
    const char c = peek();
    if (c == '\\' && quote != '\'') {
      advance();
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || (c == '\'' && !quoted)) {
      quote = c;
    } else if (c == open) {
      ++depth;
    } else if (c == close && --depth == 0) {
      advance();
      break;
    }
  }
}

std::vector<std::string> ShellWords::fields(std::string_view& written) {
  const std::size_t begin = at_;
  Fields out;
  read(out, Until::word_end, false);
  written = text_.substr(begin, at_ - begin);
  return std::move(out.list);
}

std::string ShellWords::value() {
  Fields out{.splits = false};
  read(out, Until::word_end, false);
  return std::move(out.last());
}

void ShellWords::read(Fields& out, Until until, bool quoted) {
  while (!at_end()) {
    if (joins_lines()) continue;
    const char c = peek();
    const std::size_t begin = at_;
    if (c == '\\' && (!quoted || contains(until == Until::quote ? "$`\"\\" : "$`\"\\}", peek(1)))) {
      if (at_ + 1 < end_) out.add(text_.substr(at_ + 1, 1), true);
      advance(2);
    } else if (c == '\'' && !quoted) {
      const std::size_t end = std::min(text_.find('\'', at_ + 1), end_);
      out.add(text_.substr(at_ + 1, end - at_ - 1), true);
      at_ = end;
      advance();
    } else if (c == '"') {
      advance();
      if (until == Until::quote) return;
      read(out, Until::quote, true);
      if (!std::exchange(no_elements_, false)) out.last();  // "" is a word, too
    } else if (c == '$') {
      dollar(out, quoted);
    } else if (c == '`') {
      note();
      advance();
      while (!at_end() && peek() != '`') advance(peek() == '\\' ? 2 : 1);
      advance();
      refer(out, text_.substr(begin, at_ - begin), quoted);
    } else if (until == Until::word_end && (c == '<' || c == '>') && peek(1) == '(' && !out.open) {
      note();
      advance();
      skip_pair('(', ')', false);
      refer(out, text_.substr(begin, at_ - begin), quoted);
    } else if (until == Until::word_end && contains(kWordEnds, c)) {
      return;
    } else {
      const std::string_view ends = until == Until::word_end ? kSpecialOrEnd : kSpecial;
      at_ = std::min(text_.find_first_of(ends, at_ + 1), end_);
      out.add(text_.substr(begin, at_ - begin), quoted || until == Until::word_end);
    }
  }
}

void ShellWords::ansi_quotes(Fields& out) {
  advance(2);
  std::string text;
  for (; !at_end() && peek() != '\''; advance()) {
    constexpr std::string_view kKinds = "ntre";
    const bool escaped = peek() == '\\';
    if (escaped) advance();
    const std::size_t which = escaped ? kKinds.find(peek()) : std::string_view::npos;
    if (!at_end()) text += which == std::string_view::npos ? peek() : "\n\t\r\x1b"[which];
  }
  advance();
  out.add(text, true);
}

void ShellWords::dollar(Fields& out, bool quoted) {
  const std::size_t begin = at_;
  const char next = peek(1);
  if (next == '\'' && !quoted) {
    ansi_quotes(out);
    return;
  }
  if (next == '{') {
    advance();
    skip_pair('{', '}', quoted);
  } else if (next == '(') {
    note();
    advance();
    skip_pair('(', ')', false);
  } else {
    advance();
    const std::size_t size = name_size(rest());
    advance(size == 0 && next != '\0' && contains("0123456789@*#?$!-", next) ? 1 : size);
    if (next == '"' && !quoted) return;  // $"…", a text to be translated
  }
  refer(out, text_.substr(begin, at_ - begin), quoted);
}

/// `written`: `$NAME`, `${…}`, or text that stays unchanged.
void ShellWords::refer(Fields& out, std::string_view written, bool quoted) {
  spend(written.size());
  const bool braces = written.starts_with("${");
  std::string_view how = written.substr(braces ? 2 : 1);
  if (written.front() != '$' || (braces && !how.ends_with('}'))) how = {};
  if (braces && !how.empty()) how.remove_suffix(1);
  const std::string_view name = how.substr(0, name_size(how));
  how.remove_prefix(name.size());
  const auto found = variables_.find(std::string(name));
  const std::vector<std::string>* const elements = found == variables_.end() ? nullptr : &found->second;

  const bool all = how == "[@]" || how == "[*]";
  std::optional<std::size_t> index;  // nothing: not understood
  if (how.empty() && !name.empty()) index = 0;
  if (how.size() > 2 && how.front() == '[') index = whole_number<std::size_t>(how.substr(1, how.size() - 2));
  if (!all && !index && !name.empty() && expanding_.empty() && defaults_ < kMostDepth) {
    const bool colon = how.front() == ':';
    const std::string_view rest = how.substr(colon ? 1 : 0);
    const char operation = rest.empty() ? '\0' : rest.front();
    const bool has = elements != nullptr && !elements->empty() && !(colon && elements->front().empty());
    if (contains("-=+", operation)) {
      if (has == (operation == '+')) read_inside(out, rest.substr(1), quoted);
      if (!has || operation == '+') return;
      index = 0;
    }
  }
  if (braces && !all && !index && expanding_.empty()) note();
  if ((!all && !index) || elements == nullptr || expanding_.size() == kMostDepth ||
      std::ranges::find(expanding_, name) != expanding_.end()) {
    out.last().append(1, kWritten).append(written).append(1, kEndWritten);
  } else if (all) {
    no_elements_ = quoted && elements->empty();
    for (std::size_t i = 0; i < elements->size(); ++i) {
      if (i != 0 && ((how == "[*]" && quoted) || !out.splits))
        out.add(" ", true);
      else if (i != 0)
        out.open = false;
      expand(out, name, (*elements)[i], quoted);
    }
  } else if (*index < elements->size()) {
    expand(out, name, (*elements)[*index], quoted);
  }
}

/// A default, which is a part of the text.
void ShellWords::read_inside(Fields& out, std::string_view text, bool quoted) {
  const std::size_t begin = static_cast<std::size_t>(text.data() - text_.data());
  const std::size_t behind = std::exchange(at_, begin);
  const std::size_t end = std::exchange(end_, begin + text.size());
  ++defaults_;
  read(out, Until::text_end, quoted);
  --defaults_;
  at_ = behind;
  end_ = end;
}

void ShellWords::expand(Fields& out, std::string_view name, std::string_view value, bool quoted) {
  spend(value.size());
  expanding_.push_back(name);
  while (true) {
    const std::size_t begin = value.find(kWritten);
    out.add(value.substr(0, begin), quoted);
    if (begin == std::string_view::npos) break;
    const std::size_t end = value.find(kEndWritten, begin);
    refer(out, value.substr(begin + 1, end - begin - 1), quoted);
    value.remove_prefix(end + 1);
  }
  expanding_.pop_back();
}

void ShellWords::spend(std::size_t size) {
  constexpr std::size_t kEach = 64;  // for the time that looking it up takes
  spent_ += size + kEach;
  if (spent_ > kMostExpanded)
    throw FormatError(display(file_), "refused: its variables expand to too much text");
}

void ShellWords::assign(const std::string& name, std::vector<std::string> elements, bool array, bool append) {
  std::vector<std::string>& old = variables_[name];
  if (array) {
    if (!append) old.clear();
    std::ranges::move(elements, std::back_inserter(old));
    return;
  }
  if (old.empty()) old.resize(1);
  old.front() = (append ? std::move(old.front()) : "") + elements.front();  // of an array the first one
}

void ShellWords::note() {
  if (at_ > counted_) {
    line_ += static_cast<std::size_t>(std::ranges::count(text_.substr(counted_, at_ - counted_), '\n'));
    counted_ = at_;
  }
  if (noted_.empty() || noted_.back() != line_) noted_.push_back(line_);
}

}  // namespace msprobe::pack
