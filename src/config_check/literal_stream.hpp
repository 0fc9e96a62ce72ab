// SPDX-License-Identifier: Apache-2.0
// A Python or JSON literal that arrives in pieces, some of which do not belong to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"

namespace msprobe::config_check {

/// Takes pieces that end between two tokens. A piece that cannot go on from where the literal stands is left
/// out; of one that goes wrong further on, what comes up to its last comma before is taken.
class LiteralStream {
 public:
  /// True if some of the piece was taken.
  bool feed(std::string_view piece);
  /// The outermost bracket is closed.
  bool done() const { return begun_ && open_.empty(); }
  /// Brackets that are open.
  std::size_t depth() const { return open_.size(); }
  /// The literal, once it is done().
  pack::Value take();

 private:
  enum class Kind : std::uint8_t { open, close, comma, colon, text, scalar, none };
  struct Token {
    Kind kind = Kind::none;
    char bracket = 0;
    pack::Value value;
  };
  /// What may come next.
  enum class Expect : std::uint8_t {
    value,           // after a colon; or first of all
    value_or_close,  // in a list
    key_or_close,    // in a dictionary
    colon,
    comma_or_close,
  };
  struct State {
    Expect expect = Expect::value;
    bool text = false;  // a text came last, and another one goes on with it
  };

  static bool next_token(std::string_view& rest, Token& token);
  static bool text_token(std::string_view& rest, Token& token);
  bool step(const Token& token, std::vector<char>& open, State& state) const;
  void apply(Token&& token);
  void add(pack::Value value);

  std::vector<char> open_;
  State state_;
  bool begun_ = false;
  std::vector<pack::Value> values_;  // one an open bracket, the innermost last
  std::vector<std::string> keys_;    // the key that waits for its value, one an open dictionary
  pack::Value result_;
};

}  // namespace msprobe::config_check
