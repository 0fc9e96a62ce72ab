// SPDX-License-Identifier: Apache-2.0
#include "config_check/literal_stream.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "support/text.hpp"
#include "support/utf8.hpp"

namespace msprobe::config_check {
namespace {

using pack::PackValue;

constexpr std::size_t kDeepestLiteral = 200;

bool is_word(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '.' ||
         c == '+' || c == '-';
}

/// Reads so many hexadecimal digits from the front of a text; nothing if there are fewer.
std::optional<std::uint32_t> take_hex(std::string_view& rest, std::size_t digits) {
  std::uint32_t code = 0;
  if (rest.size() < digits) return std::nullopt;
  const char* const end = rest.data() + digits;
  if (std::from_chars(rest.data(), end, code, 16).ptr != end) return std::nullopt;
  rest.remove_prefix(digits);
  return code;
}

/// The value of a word: a name or a number.
std::optional<PackValue> word_value(std::string_view word) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (word == "None" || word == "null") return PackValue();
  if (word == "True" || word == "true") return PackValue::of(true);
  if (word == "False" || word == "false") return PackValue::of(false);
  if (word == "nan" || word == "NaN") return PackValue::of(std::numeric_limits<double>::quiet_NaN());
  if (word == "inf" || word == "Infinity") return PackValue::of(kInfinity);
  if (word == "-inf" || word == "-Infinity") return PackValue::of(-kInfinity);
  const bool sign = word.starts_with('-') || word.starts_with('+');
  const std::string_view body = word.substr(sign ? 1 : 0);
  if (body.empty() || !((body[0] >= '0' && body[0] <= '9') || body[0] == '.')) return std::nullopt;
  if (body.find_first_not_of("0123456789") == std::string_view::npos) {
    std::string_view digits = body.substr(std::min(body.find_first_not_of('0'), body.size() - 1));
    const bool minus = word.starts_with('-') && digits != "0";
    return PackValue::of_integer((minus ? "-" : "") + std::string(digits));
  }
  if (const auto number = parse_number(word)) return PackValue::of(*number);
  return std::nullopt;
}

}  // namespace

bool LiteralStream::text_token(std::string_view& rest, Token& token) {
  const char quote = rest.front();
  rest.remove_prefix(1);
  std::string text;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == quote) {
      token.kind = LiteralTokenKind::text;
      token.value = PackValue::of_text(std::move(text));
      return true;
    }
    if (c != '\\') {
      text += c;
      continue;
    }
    if (rest.empty()) return false;
    const char kind = rest.front();
    rest.remove_prefix(1);
    constexpr std::string_view kKinds = "nrtbfav0123456";
    constexpr std::string_view kValues = "\n\r\t\b\f\a\v";
    if (kind == 'x' || kind == 'u' || kind == 'U') {
      const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
      auto code = take_hex(rest, digits);
      if (!code) return false;
      if (*code >= 0xD800 && *code < 0xDC00 && rest.starts_with("\\u")) {
        std::string_view after = rest.substr(2);
        const auto low = take_hex(after, 4);
        if (low && *low >= 0xDC00 && *low < 0xE000) {
          code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
          rest = after;
        }
      }
      append_utf8(text, std::min<std::uint32_t>(*code, 0x10FFFF));
    } else if (kind >= '0' && kind <= '7') {
      std::uint32_t code = static_cast<std::uint32_t>(kind - '0');
      for (int i = 0; i < 2 && !rest.empty() && rest.front() >= '0' && rest.front() <= '7'; ++i) {
        code = code * 8 + static_cast<std::uint32_t>(rest.front() - '0');
        rest.remove_prefix(1);
      }
      append_utf8(text, code);
    } else if (const std::size_t which = kKinds.find(kind); which < kValues.size()) {
      text += kValues[which];
    } else if (kind == '\\' || kind == '\'' || kind == '"' || kind == '/') {
      text += kind;
    } else {
      text += '\\';
      text += kind;
    }
  }
  return false;  // the quote is not closed in this piece
}

bool LiteralStream::next_token(std::string_view& rest, Token& token) {
  const std::size_t blank = std::min(rest.find_first_not_of(" \t\r\n"), rest.size());
  rest.remove_prefix(blank);
  token = {};
  if (rest.empty()) return false;
  const char c = rest.front();
  if (c == '\'' || c == '"') return text_token(rest, token);
  if (std::string_view("{}[](),:").find(c) != std::string_view::npos) {
    rest.remove_prefix(1);
    token.bracket = c;
    token.kind = c == ','                           ? LiteralTokenKind::comma
                 : c == ':'                         ? LiteralTokenKind::colon
                 : c == '{' || c == '[' || c == '(' ? LiteralTokenKind::open
                                                    : LiteralTokenKind::close;
    return true;
  }
  std::size_t size = 0;
  while (size < rest.size() && is_word(rest[size])) ++size;
  const std::string_view word = rest.substr(0, size);
  // Prefixes of texts: u'…', b'…'.
  if (word.size() == 1 && (word == "u" || word == "b") && size < rest.size() &&
      (rest[size] == '\'' || rest[size] == '"')) {
    rest.remove_prefix(1);
    return text_token(rest, token);
  }
  auto value = word_value(word);
  if (!value) return false;
  rest.remove_prefix(size);
  token.kind = LiteralTokenKind::scalar;
  token.value = std::move(*value);
  return true;
}

/// Advances by one token; false if the token is not allowed at this place.
bool LiteralStream::step(const Token& token, std::vector<char>& open, LiteralState& state) const {
  const auto complete = [&](bool text) {
    state.expect = Expect::comma_or_close;
    state.text = text;
  };
  switch (token.kind) {
    case LiteralTokenKind::open:
      if (state.expect != Expect::value && state.expect != Expect::value_or_close) return false;
      if (open.size() >= kDeepestLiteral) return false;
      open.push_back(token.bracket);
      state = {token.bracket == '{' ? Expect::key_or_close : Expect::value_or_close, false};
      return true;
    case LiteralTokenKind::close: {
      const char partner = token.bracket == '}' ? '{' : token.bracket == ']' ? '[' : '(';
      if (open.empty() || open.back() != partner) return false;
      if (state.expect == Expect::value || state.expect == Expect::colon) return false;
      open.pop_back();
      complete(false);
      return true;
    }
    case LiteralTokenKind::comma:
      if (state.expect != Expect::comma_or_close || open.empty()) return false;
      state = {open.back() == '{' ? Expect::key_or_close : Expect::value_or_close, false};
      return true;
    case LiteralTokenKind::colon:
      if (state.expect != Expect::colon) return false;
      state = {Expect::value, false};
      return true;
    case LiteralTokenKind::text:
      if (state.text) return true;  // 'a' 'b' is 'ab'
      [[fallthrough]];
    case LiteralTokenKind::scalar:
      if (open.empty()) return false;
      if (state.expect == Expect::key_or_close) {
        state = {Expect::colon, token.kind == LiteralTokenKind::text};
        return true;
      }
      if (state.expect != Expect::value && state.expect != Expect::value_or_close) return false;
      complete(token.kind == LiteralTokenKind::text);
      return true;
    case LiteralTokenKind::none:
      break;
  }
  return false;
}

void LiteralStream::add(PackValue value) {
  if (values_.empty()) {
    result_ = std::move(value);
  } else if (values_.back().is(PackValue::Type::map)) {
    values_.back().push(std::move(keys_.back()), std::move(value));
  } else {
    values_.back().push(std::move(value));
  }
}

void LiteralStream::apply(Token&& token) {
  const bool key = state_.expect == Expect::key_or_close;
  const bool goes_on = token.kind == LiteralTokenKind::text && state_.text;
  const bool after_key = state_.expect == Expect::colon;
  step(token, open_, state_);
  begun_ = true;
  switch (token.kind) {
    case LiteralTokenKind::open:
      values_.push_back(token.bracket == '{' ? PackValue::map() : PackValue::list());
      keys_.emplace_back();
      break;
    case LiteralTokenKind::close: {
      PackValue value = std::move(values_.back());
      values_.pop_back();
      keys_.pop_back();
      value.settle();
      add(std::move(value));
      break;
    }
    case LiteralTokenKind::text:
      if (goes_on && after_key) {
        keys_.back() += token.value.text();
        break;
      }
      if (goes_on) {
        values_.back().items().back().extend(token.value.text());
        break;
      }
      [[fallthrough]];
    case LiteralTokenKind::scalar:
      if (key) {
        keys_.back() = pack::python_str(token.value);
      } else {
        add(std::move(token.value));
      }
      break;
    case LiteralTokenKind::comma:
    case LiteralTokenKind::colon:
    case LiteralTokenKind::none:
      break;
  }
}

bool LiteralStream::feed(std::string_view piece) {
  std::vector<Token> tokens;
  std::vector<char> open = open_;
  LiteralState state = state_;
  std::size_t good = 0;  // tokens up to the last place where the piece may be cut
  std::string_view rest = piece;
  bool whole = true;
  bool begun = begun_;
  while (!(begun && open.empty())) {
    Token token;
    if (!next_token(rest, token)) {
      whole =
          rest.find_first_not_of(" \t\r\n") == std::string_view::npos && token.kind == LiteralTokenKind::none;
      break;
    }
    if (!step(token, open, state)) {
      whole = false;
      break;
    }
    begun = true;
    tokens.push_back(std::move(token));
    const LiteralTokenKind kind = tokens.back().kind;
    if (kind == LiteralTokenKind::comma || (begun && open.empty())) good = tokens.size();
  }
  // A single name without its colon was printed by another process.
  if (whole && state.expect != Expect::colon) good = tokens.size();
  for (std::size_t i = 0; i < good; ++i) apply(std::move(tokens[i]));
  return good != 0;
}

PackValue LiteralStream::take() {
  return std::move(result_);
}

}  // namespace msprobe::config_check
