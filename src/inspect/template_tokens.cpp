// SPDX-License-Identifier: Apache-2.0
#include "inspect/template_tokens.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "inspect/template_syntax.hpp"
#include "support/ascii.hpp"
#include "support/utf8.hpp"

namespace msprobe::inspect {
namespace {

using Token = TemplateToken;
using TokenKind = TemplateToken::TokenKind;

bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_name_letter(char c) {
  return c == '_' || is_letter(c);
}
/// Python takes some of these for letters, and some for blanks.
bool is_strange(char c) {
  return static_cast<unsigned char>(c) >= 0x80 || (static_cast<unsigned char>(c) < 0x20 && !is_blank(c));
}

/// The text between the quotes as Python's unicode_escape reads it.
Token string_token(std::string_view raw) {
  Token token{TokenKind::string, {}, false};
  constexpr std::string_view kEscapes = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      token.text += raw[i];
      continue;
    }
    const char kind = raw[++i];
    if (kind == '\n') continue;
    if (const std::size_t known = kEscapes.find(kind); known != std::string_view::npos) {
      token.text += kMeanings[known];
      continue;
    }
    const bool octal = kind >= '0' && kind <= '7';
    std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    // Names of characters; and Jinja makes one character of the two that end a line.
    if (kind == 'N' || kind == '\r') token.strange = true;
    if (!octal && digits == 0) {
      token.text += '\\';
      token.text += kind;
      continue;
    }
    const std::size_t begin = octal ? i : i + 1;
    if (octal) {
      while (digits < 3 && begin + digits < raw.size() && raw[begin + digits] >= '0' &&
             raw[begin + digits] <= '7')
        ++digits;
    }
    unsigned code = 0;
    if (begin + digits > raw.size()) throw BrokenTemplate("an escape is cut off");
    const char* const end = raw.data() + begin + digits;
    if (std::from_chars(raw.data() + begin, end, code, octal ? 8 : 16).ptr != end || code > 0x10ffff)
      throw BrokenTemplate("an escape without its digits");
    append_utf8(token.text, code);
    i = begin + digits - 1;
  }
  return token;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) outside();
    if (strange_) throw StrangeTemplate("a template with a tag that is not ASCII");
    tokens_.push_back({});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  void outside() {
    std::size_t begin = text_.find('{', at_);
    while (begin != std::string_view::npos &&
           text_.substr(begin + 1, 1).find_first_of("{%#") == std::string_view::npos)
      begin = text_.find('{', begin + 1);
    if (begin == std::string_view::npos) {
      tokens_.push_back({TokenKind::text, {}, false});
      at_ = text_.size();
      return;
    }
    if (begin > at_) tokens_.push_back({TokenKind::text, {}, false});
    const char kind = text_[begin + 1];
    at_ = begin + 2;
    if (kind == '#') return go_behind("#}");
    if (rest().starts_with('-') || rest().starts_with('+')) ++at_;
    if (kind == '%' && raw()) return;
    tokens_.push_back({kind == '%' ? TokenKind::block_begin : TokenKind::print_begin, {}, false});
    inside(kind == '%' ? "%}" : "}}", kind == '%');
  }

  void go_behind(std::string_view end) {
    const std::size_t at = text_.find(end, at_);
    if (at == std::string_view::npos) throw BrokenTemplate("a comment without an end");
    at_ = at + end.size();
  }

  /// Is it a block whose text is not a template?
  bool raw() {
    const auto word_at = [&](std::size_t at, std::string_view word) -> std::size_t {
      const auto skip = [&] {
        while (at < text_.size() && is_blank(text_[at])) ++at;
      };
      skip();
      if (!text_.substr(at).starts_with(word)) return 0;
      at += word.size();
      skip();
      if (text_.substr(at).starts_with('-') || text_.substr(at).starts_with('+')) ++at;
      return text_.substr(at).starts_with("%}") ? at + 2 : 0;
    };
    const std::size_t begin = word_at(at_, "raw");
    if (begin == 0) return false;
    for (std::size_t at = text_.find("{%", begin); at != std::string_view::npos;
         at = text_.find("{%", at + 1)) {
      std::size_t word = at + 2;
      if (text_.substr(word).starts_with('-') || text_.substr(word).starts_with('+')) ++word;
      if (const std::size_t end = word_at(word, "endraw"); end != 0) {
        at_ = end;
        tokens_.push_back({TokenKind::text, {}, false});
        return true;
      }
    }
    throw BrokenTemplate("a raw block without an end");
  }

  void inside(std::string_view end, bool block) {
    std::string open;  // the signs that would close the brackets
    for (;;) {
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
      if (at_ == text_.size()) throw BrokenTemplate("a tag without an end");
      if (open.empty()) {
        const bool strips = rest().starts_with('-') || (block && rest().starts_with('+'));
        if (rest().substr(strips ? 1 : 0).starts_with(end)) {
          at_ += end.size() + (strips ? 1 : 0);
          tokens_.push_back({block ? TokenKind::block_end : TokenKind::print_end, {}, false});
          return;
        }
      }
      const char c = text_[at_];
      if (is_name_letter(c)) {
        word();
      } else if (is_strange(c)) {
        strange_ = true;
        ++at_;
      } else if (is_digit(c)) {
        number();
      } else if (c == '\'' || c == '"') {
        string(c);
      } else {
        sign(open);
      }
    }
  }

  void word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    tokens_.push_back({TokenKind::name, std::string(text_.substr(begin, at_ - begin)), false});
  }

  /// `digits` and single underscores between them.
  void run_of(std::string_view digits) {
    while (at_ < text_.size()) {
      const std::size_t next = at_ + (text_[at_] == '_' ? 1 : 0);
      if (next >= text_.size() || digits.find(text_[next]) == std::string_view::npos) return;
      at_ = next + 1;
    }
  }
  bool is_digit_at(std::size_t at) const { return at < text_.size() && is_digit(text_[at]); }

  void number() {
    constexpr std::string_view kDecimal = "0123456789";
    const std::size_t begin = at_;
    tokens_.push_back({TokenKind::number, {}, false});
    run_of(kDecimal);
    const std::size_t whole = at_;
    // `1.5` is a number, and `x.1.5` is not.
    if (begin == 0 || text_[begin - 1] != '.') {
      if (rest().starts_with('.') && is_digit_at(at_ + 1)) {
        ++at_;
        run_of(kDecimal);
      }
      if (rest().starts_with('e') || rest().starts_with('E')) {
        const std::size_t sign = text_.substr(at_ + 1, 1).find_first_of("+-") == 0 ? 1 : 0;
        if (is_digit_at(at_ + 1 + sign)) {
          at_ += 1 + sign;
          run_of(kDecimal);
        }
      }
    }
    if (at_ != whole || text_[begin] != '0') return;
    at_ = begin + 1;
    const char base = begin + 1 < text_.size() ? text_[begin + 1] : ' ';
    const std::string_view digits = base == 'x' || base == 'X'   ? "0123456789abcdefABCDEF"
                                    : base == 'o' || base == 'O' ? "01234567"
                                    : base == 'b' || base == 'B' ? "01"
                                                                 : "";
    if (digits.empty()) return run_of("0");
    ++at_;
    run_of(digits);
    if (at_ == begin + 2) at_ = begin + 1;
  }

  void string(char quote) {
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) throw BrokenTemplate("a text without an end");
    tokens_.push_back(string_token(text_.substr(begin, at_ - begin)));
    ++at_;
  }

  void sign(std::string& open) {
    static constexpr std::array<std::string_view, 6> kLong = {"//", "**", "==", "!=", ">=", "<="};
    const auto* found =
        std::ranges::find_if(kLong, [&](std::string_view each) { return rest().starts_with(each); });
    const std::string_view sign = found != kLong.end() ? *found : rest().substr(0, 1);
    if (sign.size() == 1 && std::string_view("+-/*%~[](){}><=.:|,;").find(sign) == std::string_view::npos)
      throw BrokenTemplate("a character that no tag has");
    const char c = sign.front();
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) throw BrokenTemplate("a bracket that closes nothing");
      open.pop_back();
    }
    tokens_.push_back({TokenKind::sign, std::string(sign), false});
    at_ += sign.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool strange_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<TemplateToken> template_tokens(std::string_view text) {
  return Lexer(text).run();
}

}  // namespace msprobe::inspect
