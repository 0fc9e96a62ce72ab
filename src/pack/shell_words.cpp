// SPDX-License-Identifier: Apache-2.0
#include "pack/shell_words.hpp"

#include <algorithm>
#include <charconv>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

constexpr int kMostDepth = 32;  // of ${A:-${B:-…}} and of references behind references
constexpr std::size_t kMostExpanded = std::size_t{16} << 20;  // text that a script may make of its variables

bool is_name_start(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool is_name(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void add_text(ShellWord& out, std::string_view text, bool quoted) {
  if (!out.empty() && out.back().kind == ShellPart::Kind::text && out.back().quoted == quoted &&
      !out.back().verbatim) {
    out.back().text += text;
    return;
  }
  ShellPart part;
  part.text = text;
  part.quoted = quoted;
  out.push_back(std::move(part));
}

void add_verbatim(ShellWord& out, std::string_view text) {
  ShellPart part;
  part.text = text;
  part.quoted = true;
  part.verbatim = true;
  out.push_back(std::move(part));
}

std::size_t name_size(std::string_view text) {
  if (text.empty() || !is_name_start(text.front())) return 0;
  std::size_t size = 1;
  while (size < text.size() && is_name(text[size])) ++size;
  return size;
}

}  // namespace

bool ShellLexer::joins_lines() {
  const std::size_t size = rest().starts_with("\\\n") ? 2 : rest().starts_with("\\\r\n") ? 3 : 0;
  advance(size);
  return size != 0;
}

void ShellLexer::skip_blanks() {
  while (true) {
    if (joins_lines()) continue;
    if (peek() != ' ' && peek() != '\t' && peek() != '\r') return;
    advance();
  }
}

void ShellLexer::skip_line() {
  at_ = std::min(text_.find('\n', at_), text_.size());
}

std::string_view ShellLexer::parenthesized() {
  const std::size_t begin = at_;
  std::size_t depth = 0;
  char quote = 0;
  for (; !at_end(); advance()) {
    const char c = peek();
    if (c == '\\' && quote != '\'') {
      advance();
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && --depth == 0) {
      advance();
      break;
    }
  }
  return text_.substr(begin, at_ - begin);
}

void ShellLexer::single_quotes(ShellWord& out) {
  advance();
  const std::size_t end = std::min(text_.find('\'', at_), text_.size());
  add_text(out, text_.substr(at_, end - at_), true);
  at_ = end;
  advance();
}

void ShellLexer::ansi_quotes(ShellWord& out) {
  advance(2);
  std::string text;
  for (; !at_end() && peek() != '\''; advance()) {
    if (peek() != '\\') {
      text += peek();
      continue;
    }
    advance();
    constexpr std::string_view kKinds = "ntre";
    constexpr std::string_view kValues = "\n\t\r\x1b";
    const std::size_t which = kKinds.find(peek());
    if (!at_end()) text += which == std::string_view::npos ? peek() : kValues[which];
  }
  advance();
  add_text(out, text, true);
}

void ShellLexer::backticks(ShellWord& out) {
  const std::size_t begin = at_;
  advance();
  while (!at_end() && peek() != '`') advance(peek() == '\\' ? 2 : 1);
  advance();
  add_verbatim(out, text_.substr(begin, at_ - begin));
}

void ShellLexer::double_quotes(ShellWord& out) {
  advance();
  add_text(out, "", true);  // "" is a word too
  while (!at_end() && peek() != '"') {
    if (joins_lines()) continue;
    const char c = peek();
    if (c == '\\') {
      const char next = peek(1);
      if (next == '$' || next == '`' || next == '"' || next == '\\') {
        add_text(out, std::string_view(&next, 1), true);
        advance(2);
      } else {
        add_text(out, "\\", true);
        advance();
      }
    } else if (c == '$') {
      dollar(out, true);
    } else if (c == '`') {
      backticks(out);
    } else {
      const std::size_t end = std::min(text_.find_first_of("\"\\$`", at_), text_.size());
      add_text(out, text_.substr(at_, end - at_), true);
      at_ = end;
    }
  }
  advance();
}

ShellWord ShellLexer::whole(bool quoted) {
  ShellWord out;
  while (!at_end()) {
    if (peek() == '$') {
      dollar(out, quoted);
    } else if (peek() == '"') {
      double_quotes(out);
    } else if (peek() == '\'') {
      single_quotes(out);
    } else {
      if (peek() == '\\') advance();
      const char c = peek();
      if (!at_end()) add_text(out, std::string_view(&c, 1), false);
      advance();
    }
  }
  return out;
}

void ShellLexer::dollar(ShellWord& out, bool quoted) {
  const std::size_t begin = at_;
  const char next = peek(1);
  if (next == '{') {
    braces(out, quoted);
    return;
  }
  if (next == '(') {
    advance();
    parenthesized();
    add_verbatim(out, text_.substr(begin, at_ - begin));
    return;
  }
  if (next == '\'' && !quoted) {
    ansi_quotes(out);
    return;
  }
  if (next == '"' && !quoted) {
    advance();
    double_quotes(out);
    return;
  }
  advance();
  const std::size_t size = name_size(rest());
  if (size == 0) {
    // $1, $@, $?: only a running shell knows.
    const bool special =
        std::string_view("0123456789@*#?$!-").find(next) != std::string_view::npos && next != '\0';
    if (special) advance();
    add_verbatim(out, text_.substr(begin, at_ - begin));
    return;
  }
  ShellPart part;
  part.kind = ShellPart::Kind::reference;
  part.quoted = quoted;
  part.name = rest().substr(0, size);
  advance(size);
  part.text = text_.substr(begin, at_ - begin);
  out.push_back(std::move(part));
}

void ShellLexer::braces(ShellWord& out, bool quoted) {
  const std::size_t begin = at_;
  advance(2);
  const std::size_t inside = at_;
  std::size_t depth = 1;
  for (; !at_end(); advance()) {
    const char c = peek();
    if (c == '\\') {
      advance();
    } else if (c == '\'' && !quoted) {
      at_ = std::min(text_.find('\'', at_ + 1), text_.size());
    } else if (c == '$' && peek(1) == '{') {
      ++depth;
      advance();
    } else if (c == '}' && --depth == 0) {
      break;
    }
  }
  std::string_view body = text_.substr(inside, at_ - inside);
  const bool closed = !at_end();
  advance();
  ShellPart part;
  part.kind = ShellPart::Kind::reference;
  part.quoted = quoted;
  part.text = text_.substr(begin, at_ - begin);
  const std::size_t size = name_size(body);
  part.name = body.substr(0, size);
  body.remove_prefix(size);
  bool known = closed && size != 0 && depth_ < kMostDepth;
  using Mode = ShellPart::Mode;
  if (body.empty()) {
    part.mode = Mode::plain;
  } else if (body == "[@]" || body == "[*]") {
    part.mode = body == "[@]" || !quoted ? Mode::all : Mode::joined;
  } else if (body.front() == '[' && body.back() == ']') {
    part.mode = Mode::element;
    const std::string_view digits = body.substr(1, body.size() - 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), part.index);
    known = known && error == std::errc() && end == digits.data() + digits.size();
  } else {
    if (body.front() == ':') {
      part.empty_counts = true;
      body.remove_prefix(1);
    }
    const char operation = body.empty() ? '\0' : body.front();
    if (operation == '-' || operation == '=') {
      part.mode = Mode::fallback;
    } else if (operation == '+') {
      part.mode = Mode::alternative;
    } else {
      known = false;
    }
    if (known) part.word = ShellLexer(body.substr(1), depth_ + 1).whole(quoted);
  }
  if (known) {
    out.push_back(std::move(part));
  } else {
    add_verbatim(out, part.text);
  }
}

ShellWord ShellLexer::word() {
  ShellWord out;
  while (!at_end()) {
    if (joins_lines()) continue;
    const char c = peek();
    if (c == '\\') {
      const char next = peek(1);
      if (at_ + 1 < text_.size()) add_text(out, std::string_view(&next, 1), true);
      advance(2);
    } else if (c == '\'') {
      single_quotes(out);
    } else if (c == '"') {
      double_quotes(out);
    } else if (c == '$') {
      dollar(out, false);
    } else if (c == '`') {
      backticks(out);
    } else if ((c == '<' || c == '>') && peek(1) == '(' && out.empty()) {
      const std::size_t begin = at_;
      advance();
      parenthesized();
      add_verbatim(out, text_.substr(begin, at_ - begin));
    } else if (is_blank(c) || c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '<' ||
               c == '>') {
      return out;
    } else {
      const std::size_t end = std::min(text_.find_first_of("\\'\"$` \t\r\n;&|()<>", at_ + 1), text_.size());
      add_text(out, text_.substr(at_, end - at_), false);
      at_ = end;
    }
  }
  return out;
}

void ShellVariables::spend(std::size_t size) {
  constexpr std::size_t kEach = 8;
  spent_ += size + kEach;
  if (spent_ > kMostExpanded)
    throw FormatError(display(file_), "refused: its variables expand to too much text");
}

/// In `A=$A:x` with A unknown before, `$A` is what the environment has, and stays so.
void ShellVariables::keep_outer(ShellWord& word, const std::string& name) {
  for (ShellPart& part : word) {
    if (part.kind != ShellPart::Kind::reference || part.name != name) continue;
    part.kind = ShellPart::Kind::text;
    part.quoted = part.verbatim = true;
    part.word.clear();
  }
}

/// `A="$A more"`, as scripts build up arguments: what A has stays where it is, or a script takes the square
/// of its lines. False if it is no such assignment.
bool ShellVariables::extend(const std::string& name, const ShellWord& value) {
  const auto is_text = [](const ShellPart& part) {
    return part.kind == ShellPart::Kind::text && !part.verbatim;
  };
  const auto own = std::ranges::find_if_not(
      value, [&](const ShellPart& part) { return is_text(part) && part.text.empty(); });
  if (own == value.end() || own->kind != ShellPart::Kind::reference || own->name != name ||
      own->mode != ShellPart::Mode::plain)
    return false;
  const auto found = variables_.find(name);
  if (found == variables_.end()) return false;
  Variable& variable = found->second;
  if (variable.array || variable.open || variable.elements.size() != 1) return false;
  ShellWord& word = variable.elements.front();
  for (ShellPart& part : resolve(ShellWord(own + 1, value.end()), 0)) {
    variable.open = variable.open || part.kind != ShellPart::Kind::text;
    // Whether text is quoted is up to who refers to the variable.
    if (!word.empty() && is_text(word.back()) && is_text(part)) {
      word.back().text += part.text;
    } else {
      word.push_back(std::move(part));
    }
  }
  return true;
}

void ShellVariables::assign(const std::string& name, const ShellWord& value, bool append) {
  if (!append && extend(name, value)) return;
  ShellWord resolved = resolve(value, 0);
  keep_outer(resolved, name);
  Variable& variable = variables_[name];
  if (variable.elements.empty()) variable.elements.resize(1);
  if (!append) {
    variable.elements.front().clear();  // of an array the first element, as bash has it
    variable.open = false;
  }
  ShellWord& old = variable.elements.front();
  for (ShellPart& part : resolved) {
    variable.open = variable.open || part.kind != ShellPart::Kind::text;
    old.push_back(std::move(part));
  }
}

void ShellVariables::assign_array(const std::string& name, const std::vector<ShellWord>& words, bool append) {
  std::vector<ShellWord> elements;
  for (const ShellWord& word : words) {
    ShellWord resolved = resolve(word, 0);
    keep_outer(resolved, name);
    for (ShellWord& field : split(resolved)) elements.push_back(std::move(field));
  }
  Variable& variable = variables_[name];
  if (!append) variable.elements.clear();
  variable.array = true;
  for (ShellWord& element : elements) variable.elements.push_back(std::move(element));
}

ShellWord ShellVariables::resolve(const ShellWord& word, int depth) {
  ShellWord out;
  for (const ShellPart& part : word) {
    if (part.kind == ShellPart::Kind::reference && depth < kMostDepth) {
      resolve_reference(part, depth, out);
    } else {
      spend(part.text.size());
      out.push_back(part);
    }
  }
  return out;
}

void ShellVariables::resolve_reference(const ShellPart& reference, int depth, ShellWord& out) {
  using Mode = ShellPart::Mode;
  const auto found = variables_.find(reference.name);
  const Variable* const variable = found == variables_.end() ? nullptr : &found->second;
  const auto insert = [&](const ShellWord& word, bool keep_quotes) {
    for (ShellPart& part : resolve(word, depth + 1)) {
      part.quoted = reference.quoted || part.verbatim || (keep_quotes && part.quoted);
      out.push_back(std::move(part));
    }
  };
  if (reference.mode == Mode::fallback || reference.mode == Mode::alternative) {
    bool has_value = variable != nullptr && !variable->elements.empty();
    if (has_value && reference.empty_counts) {
      const ShellWord& first = variable->elements.front();
      has_value = std::ranges::any_of(first, [](const ShellPart& part) { return !part.text.empty(); });
    }
    if (has_value == (reference.mode == Mode::alternative)) {
      insert(reference.word, true);
      return;
    }
    if (reference.mode == Mode::alternative) return;
  }
  if (variable == nullptr) {
    spend(reference.text.size());
    out.push_back(reference);
    return;
  }
  if (reference.mode == Mode::all || reference.mode == Mode::joined) {
    for (std::size_t i = 0; i < variable->elements.size(); ++i) {
      if (i != 0) {
        ShellPart between;
        if (reference.mode == Mode::all) {
          between.kind = ShellPart::Kind::separator;
        } else {
          between.text = " ";
          between.quoted = true;
        }
        spend(1);
        out.push_back(std::move(between));
      }
      if (reference.quoted) add_text(out, "", true);
      insert(variable->elements[i], false);
    }
    return;
  }
  const std::size_t index = reference.mode == Mode::element ? reference.index : 0;
  if (index < variable->elements.size()) insert(variable->elements[index], false);
}

std::vector<ShellWord> ShellVariables::split(const ShellWord& word) {
  std::vector<ShellWord> fields;
  bool open = false;
  const auto field = [&]() -> ShellWord& {
    if (!open) fields.emplace_back();
    open = true;
    return fields.back();
  };
  for (const ShellPart& part : word) {
    if (part.kind == ShellPart::Kind::separator) {
      open = false;
    } else if (part.kind == ShellPart::Kind::reference || part.verbatim) {
      field().push_back(part);
    } else if (part.quoted) {
      add_text(field(), part.text, true);
    } else {
      for (std::size_t i = 0; i < part.text.size();) {
        if (is_blank(part.text[i])) {
          open = false;
          ++i;
          continue;
        }
        std::size_t end = i;
        while (end < part.text.size() && !is_blank(part.text[end])) ++end;
        add_text(field(), std::string_view(part.text).substr(i, end - i), true);
        i = end;
      }
    }
  }
  return fields;
}

std::optional<std::string> ShellVariables::known(const ShellWord& word, bool splits) {
  ShellWord resolved = resolve(word, 0);
  if (splits) {
    std::vector<ShellWord> found = split(resolved);
    if (found.size() != 1) return std::nullopt;
    resolved = std::move(found.front());
  }
  std::string text;
  for (const ShellPart& part : resolved) {
    if (part.kind != ShellPart::Kind::text || part.verbatim) return std::nullopt;
    text += part.text;
  }
  return text;
}

std::vector<std::string> ShellVariables::fields(const ShellWord& word) {
  std::vector<std::string> out;
  for (const ShellWord& field : split(resolve(word, 0))) {
    std::string& text = out.emplace_back();
    for (const ShellPart& part : field) text += part.text;
  }
  return out;
}

}  // namespace msprobe::pack
