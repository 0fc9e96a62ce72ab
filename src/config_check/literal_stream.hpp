// SPDX-License-Identifier: Apache-2.0
// Reads a Python or JSON literal that arrives in pieces, some of which do not belong to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"

namespace msprobe::config_check {

/// Accepts pieces that end between two tokens. A piece that cannot continue the literal is skipped. If a
/// piece becomes wrong later, the part up to the last comma before that place is taken.
class LiteralStream {
 public:
  /// True if some of the piece was taken.
  bool feed(std::string_view piece);
  /// Is the outermost bracket closed?
  bool done() const { return begun_ && open_.empty(); }
  /// The number of open brackets.
  std::size_t depth() const { return open_.size(); }
  /// The literal, once it is done().
  pack::PackValue take();

 private:
  enum class LiteralTokenKind : std::uint8_t { open, close, comma, colon, text, scalar, none };
  struct Token {
    LiteralTokenKind kind = LiteralTokenKind::none;
    char bracket = 0;
    pack::PackValue value;
  };
  /// The tokens that are allowed next.
  enum class Expect : std::uint8_t {
    value,           // after a colon; or first of all
    value_or_close,  // in a list
    key_or_close,    // in a dictionary
    colon,
    comma_or_close,
  };
  struct LiteralState {
    Expect expect = Expect::value;
    bool text = false;  // the last token was a text; another text would continue it
  };

  static bool next_token(std::string_view& rest, Token& token);
  static bool text_token(std::string_view& rest, Token& token);
  bool step(const Token& token, std::vector<char>& open, LiteralState& state) const;
  void apply(Token&& token);
  void add(pack::PackValue value);

  std::vector<char> open_;
  LiteralState state_;
  bool begun_ = false;
  std::vector<pack::PackValue> values_;  // one for each open bracket, the innermost last
  std::vector<std::string> keys_;        // for each open dictionary the key that waits for its value
  pack::PackValue result_;
};

}  // namespace msprobe::config_check
