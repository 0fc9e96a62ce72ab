// SPDX-License-Identifier: Apache-2.0
#include "inspect/template_syntax.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "inspect/template_tokens.hpp"

namespace msprobe::inspect {
namespace {

using Kind = TemplateKind;
using Token = TemplateToken;
using TokenKind = TemplateToken::TokenKind;
using Ref = std::uint32_t;

constexpr std::size_t kMostNodes = 1'000'000;
constexpr int kMostTemplateDepth = 150;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  std::vector<TemplateNode> run() {
    body({});
    return std::move(nodes_);
  }

 private:
  struct Deeper {
    explicit Deeper(int& depth) : depth_(depth) {
      if (++depth_ > kMostTemplateDepth) throw StrangeTemplate("a template that is nested too deeply");
    }
    ~Deeper() { --depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    int& depth_;
  };

  [[noreturn]] static void broken() { throw BrokenTemplate("the grammar of Jinja"); }

  Ref add(Kind kind, std::vector<Ref> children = {}, std::string text = {}) {
    if (nodes_.size() == kMostNodes) throw StrangeTemplate("a template of too many parts");
    nodes_.push_back({kind, std::move(text), std::move(children), false});
    return static_cast<Ref>(nodes_.size() - 1);
  }

  const Token& now() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() {
    Token token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool is(TokenKind kind) const { return now().kind == kind; }
  bool is_sign(std::string_view text) const { return is(TokenKind::sign) && now().text == text; }
  bool is_word(std::string_view text) const { return is(TokenKind::name) && now().text == text; }
  bool accept(std::string_view sign) {
    if (!is_sign(sign)) return false;
    take();
    return true;
  }
  bool accept_word(std::string_view word) {
    if (!is_word(word)) return false;
    take();
    return true;
  }
  void expect(std::string_view sign) {
    if (!accept(sign)) broken();
  }
  void expect(TokenKind kind) {
    if (!is(kind)) broken();
    take();
  }
  std::string name() {
    if (!is(TokenKind::name)) broken();
    return take().text;
  }

  /// Up to a block that begins with one of the words, which stays; to the end of all without them.
  Ref body(std::initializer_list<std::string_view> ends) {
    const Deeper deeper(depth_);
    std::vector<Ref> parts;
    for (;;) {
      if (is(TokenKind::end)) {
        if (ends.size() != 0) broken();
        return add(Kind::body, std::move(parts));
      }
      if (is(TokenKind::text)) {
        take();
        continue;
      }
      if (is(TokenKind::print_begin)) {
        take();
        parts.push_back(tuple());
        expect(TokenKind::print_end);
        continue;
      }
      expect(TokenKind::block_begin);
      if (is(TokenKind::name) && std::ranges::find(ends, now().text) != ends.end())
        return add(Kind::body, std::move(parts));
      statement(parts);
    }
  }

  void end_block() { expect(TokenKind::block_end); }
  void end_block(std::string_view word) {
    if (!accept_word(word)) broken();
    end_block();
  }

  /// The rest of the tag, and all up to the tag `end`.
  Ref block(std::string_view end) {
    end_block();
    const Ref inner = body({end});
    end_block(end);
    return inner;
  }

  void statement(std::vector<Ref>& parts) {
    const std::string word = name();
    if (word == "for") return loop(parts);
    if (word == "if") return condition(parts);
    if (word == "set") return set(parts);
    if (word == "macro") return macro(parts);
    if (word == "call") return call_block(parts);
    if (word == "filter") return filter_block(parts);
    if (word == "with") return with(parts);
    if (word == "generation") {  // of transformers
      parts.push_back(block("endgeneration"));
      return;
    }
    if (word == "do") {
      parts.push_back(tuple());
      return end_block();
    }
    if (word == "break" || word == "continue") return end_block();
    throw StrangeTemplate("a template with a tag " + word.substr(0, 40));
  }

  void end_with_else(std::vector<Ref>& parts, std::string_view end) {
    if (accept_word("else")) {
      end_block();
      parts.push_back(body({end}));
    }
    end_block(end);
  }

  void loop(std::vector<Ref>& parts) {
    const Ref names = target();
    if (!accept_word("in")) broken();
    const Ref values = tuple(false);
    parts.push_back(add(Kind::assign, {values, names}));
    if (accept_word("if")) parts.push_back(expression());
    accept_word("recursive");
    end_block();
    parts.push_back(body({"endfor", "else"}));
    end_with_else(parts, "endfor");
  }

  void condition(std::vector<Ref>& parts) {
    for (;;) {
      parts.push_back(tuple(false));
      end_block();
      parts.push_back(body({"elif", "else", "endif"}));
      if (!accept_word("elif")) return end_with_else(parts, "endif");
    }
  }

  void set(std::vector<Ref>& parts) {
    const Ref names = target();
    if (accept("=")) {
      const Ref value = tuple();
      parts.push_back(add(Kind::assign, {value, names}));
      return end_block();
    }
    Ref value = add(Kind::text);
    while (accept("|")) value = filter_call(value);
    parts.push_back(block("endset"));
    parts.push_back(add(Kind::assign, {value, names}));
  }

  void with(std::vector<Ref>& parts) {
    while (!is(TokenKind::block_end)) {
      const Ref names = target();
      expect("=");
      const Ref value = expression();
      parts.push_back(add(Kind::assign, {value, names}));
      if (!accept(",")) break;
    }
    parts.push_back(block("endwith"));
  }

  std::vector<Ref> parameters() {
    std::vector<Ref> found;
    expect("(");
    each_until(")", [&] {
      const Ref names = add(Kind::name, {}, name());
      found.push_back(accept("=") ? add(Kind::assign, {expression(), names}) : names);
    });
    return found;
  }

  void macro(std::vector<Ref>& parts) {
    std::string own = name();
    std::vector<Ref> children = parameters();
    children.insert(children.begin(), block("endmacro"));
    parts.push_back(add(Kind::macro, std::move(children), std::move(own)));
  }

  void call_block(std::vector<Ref>& parts) {
    std::vector<Ref> children;
    if (is_sign("(")) children = parameters();
    parts.push_back(expression());
    children.insert(children.begin(), block("endcall"));
    parts.push_back(add(Kind::macro, std::move(children), "caller"));
  }

  void filter_block(std::vector<Ref>& parts) {
    Ref value = filter_call(add(Kind::text));
    while (accept("|")) value = filter_call(value);
    parts.push_back(value);
    parts.push_back(block("endfilter"));
  }

  /// Names that are assigned to, also in brackets, and `ns.name`.
  Ref target() {
    std::vector<Ref> names;
    do {
      if (is(TokenKind::block_end) || is_sign("=") || is_word("in")) break;
      if (accept("(")) {
        names.push_back(target());
        expect(")");
        continue;
      }
      const Ref first = add(Kind::name, {}, name());
      names.push_back(accept(".") ? add(Kind::attribute, {first}, name()) : first);
    } while (accept(","));
    if (names.empty()) broken();
    return add(Kind::list, std::move(names));
  }

  Ref tuple(bool with_choice = true) {
    const auto one = [&] { return with_choice ? expression() : either(); };
    const Ref first = one();
    if (!is_sign(",")) return first;
    std::vector<Ref> parts{first};
    while (accept(",")) {
      if (is(TokenKind::print_end) || is(TokenKind::block_end) || is_sign(")") || is_sign("=")) break;
      parts.push_back(one());
    }
    return add(Kind::list, std::move(parts));
  }

  Ref expression() {
    const Deeper deeper(depth_);
    Ref value = either();
    while (accept_word("if")) {
      const Ref test = either();
      std::vector<Ref> parts{value, test};
      if (accept_word("else")) parts.push_back(expression());
      value = add(Kind::choice, std::move(parts));
    }
    return value;
  }

  Ref either() {
    Ref left = both();
    while (accept_word("or")) left = add(Kind::choice, {left, both()});
    return left;
  }
  Ref both() {
    Ref left = negation();
    while (accept_word("and")) left = add(Kind::choice, {left, negation()});
    return left;
  }
  Ref negation() {
    const Deeper deeper(depth_);
    if (accept_word("not")) return add(Kind::compare, {negation()});
    return comparison();
  }
  Ref comparison() {
    Ref left = sum();
    for (;;) {
      static constexpr std::array<std::string_view, 6> kSigns = {"==", "!=", "<", ">", "<=", ">="};
      const bool sign = is(TokenKind::sign) && std::ranges::find(kSigns, now().text) != kSigns.end();
      if (sign || is_word("in")) {
        take();
      } else if (is_word("not") && after().kind == TokenKind::name && after().text == "in") {
        take();
        take();
      } else {
        return left;
      }
      left = add(Kind::compare, {left, sum()});
    }
  }
  Ref sum() {
    Ref left = joined();
    while (is_sign("+") || is_sign("-")) {
      const Kind kind = take().text == "+" ? Kind::add : Kind::compute;
      left = add(kind, {left, joined()});
    }
    return left;
  }
  Ref joined() {
    Ref left = product();
    while (accept("~")) left = add(Kind::join, {left, product()});
    return left;
  }
  Ref product() {
    Ref left = power();
    while (is_sign("*") || is_sign("/") || is_sign("//") || is_sign("%")) {
      const std::string sign = take().text;
      left = add(sign.front() == '/' ? Kind::compute : Kind::multiply, {left, power()});
    }
    return left;
  }
  Ref power() {
    Ref left = signed_value(true);
    while (accept("**")) left = add(Kind::compute, {left, signed_value(true)});
    return left;
  }
  Ref signed_value(bool filters) {
    const Deeper deeper(depth_);
    Ref value = 0;
    if (is_sign("-") || is_sign("+")) {
      take();
      value = add(Kind::compute, {signed_value(false)});
    } else {
      value = primary();
    }
    value = postfix(value);
    return filters ? filters_of(value) : value;
  }

  Ref primary() {
    const Deeper deeper(depth_);
    if (is(TokenKind::name)) {
      const std::string word = take().text;
      static constexpr std::array<std::string_view, 6> kPlain = {"true", "false", "none",
                                                                 "True", "False", "None"};
      if (std::ranges::find(kPlain, word) != kPlain.end()) return add(Kind::number);
      return add(Kind::name, {}, word);
    }
    if (is(TokenKind::string)) {
      std::string text;
      bool strange = false;
      while (is(TokenKind::string)) {
        const Token part = take();
        text += part.text;
        strange = strange || part.strange;
      }
      const Ref value = add(Kind::constant, {}, std::move(text));
      nodes_[value].strange = strange;
      return value;
    }
    if (is(TokenKind::number)) {
      take();
      return add(Kind::number);
    }
    if (accept("(")) {
      if (accept(")")) return add(Kind::list);
      const Ref value = tuple();
      expect(")");
      return value;
    }
    if (accept("[")) return elements("]");
    if (accept("{")) return elements("}");
    broken();
  }

  /// Reads the elements of a list, or of a dict if it ends with a brace.
  Ref elements(std::string_view end) {
    std::vector<Ref> parts;
    each_until(end, [&] {
      parts.push_back(expression());
      if (end != "}") return;
      expect(":");
      parts.push_back(expression());
    });
    return add(Kind::list, std::move(parts));
  }

  Ref postfix(Ref value) {
    for (;;) {
      if (accept(".")) {
        if (is(TokenKind::number)) {
          take();
          value = add(Kind::item, {value, add(Kind::number)});
        } else {
          value = add(Kind::attribute, {value}, name());
        }
      } else if (accept("[")) {
        std::vector<Ref> parts;
        do {
          parts.push_back(subscript());
        } while (accept(","));
        expect("]");
        value = add(Kind::item, {value, parts.size() == 1 ? parts[0] : add(Kind::list, std::move(parts))});
      } else if (is_sign("(")) {
        value = call(value);
      } else {
        return value;
      }
    }
  }

  Ref filters_of(Ref value) {
    for (;;) {
      if (accept("|")) {
        value = filter_call(value);
      } else if (is_word("is")) {
        value = test(value);
      } else if (is_sign("(")) {
        value = call(value);
      } else {
        return value;
      }
    }
  }

  Ref subscript() {
    std::vector<Ref> parts;
    bool slice = false;
    while (!is_sign("]") && !is_sign(",")) {
      if (accept(":")) {
        slice = true;
      } else if (parts.empty() || slice) {
        parts.push_back(expression());
      } else {
        broken();
      }
    }
    if (slice) return add(Kind::slice, std::move(parts));
    if (parts.empty()) broken();
    return parts[0];
  }

  /// Calls `one` for each of the parts between commas, up to `end`; a comma may follow the last.
  template <typename One>
  void each_until(std::string_view end, const One& one) {
    for (bool first = true; !accept(end); first = false) {
      if (!first) {
        expect(",");
        if (accept(end)) return;
      }
      one();
    }
  }

  void arguments(std::vector<Ref>& children) {
    expect("(");
    each_until(")", [&] {
      if (is_sign("*") || is_sign("**")) {
        take();
        children.push_back(add(Kind::spread, {expression()}));
      } else if (is(TokenKind::name) && after().kind == TokenKind::sign && after().text == "=") {
        std::string key = take().text;
        take();
        children.push_back(add(Kind::keyword, {expression()}, std::move(key)));
      } else {
        children.push_back(expression());
      }
    });
  }
  Ref call(Ref callee) {
    std::vector<Ref> children{callee};
    arguments(children);
    return add(Kind::call, std::move(children));
  }

  std::string dotted() {
    std::string full = name();
    while (accept(".")) full += "." + name();
    return full;
  }
  Ref filter_call(Ref value) {
    std::string which = dotted();
    std::vector<Ref> children{value};
    if (is_sign("(")) arguments(children);
    return add(Kind::filter, std::move(children), std::move(which));
  }

  Ref test(Ref value) {
    take();
    accept_word("not");
    std::string which = dotted();
    std::vector<Ref> children{value};
    // Jinja takes any other name for an argument, `if` and `in` too.
    const bool word = is(TokenKind::name) && !is_word("else") && !is_word("or") && !is_word("and");
    if (is_sign("(")) {
      arguments(children);
    } else if (is_word("is")) {
      broken();
    } else if (word || is(TokenKind::string) || is(TokenKind::number) || is_sign("[") || is_sign("{")) {
      children.push_back(postfix(primary()));
    }
    return add(Kind::test, std::move(children), std::move(which));
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<TemplateNode> nodes_;
};

}  // namespace

std::vector<TemplateNode> parse_template(std::string_view text) {
  return Parser(template_tokens(text)).run();
}

}  // namespace msprobe::inspect
