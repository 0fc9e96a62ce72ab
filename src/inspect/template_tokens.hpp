// SPDX-License-Identifier: Apache-2.0
// The tokens of a template of Jinja, as jinja2's lexer.py splits it, for template_syntax.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::inspect {

struct TemplateToken {
  enum class TokenKind : std::uint8_t {
    text,
    block_begin,
    block_end,
    print_begin,
    print_end,
    name,
    string,
    number,
    sign,
    end
  };
  TokenKind kind = TokenKind::end;
  std::string text;      // of a name, a string without its quotes and escapes, or a sign
  bool strange = false;  // a string with an escape that is not followed
};

/// The last token is an end. BrokenTemplate where Jinja refuses the text, StrangeTemplate for a tag that is
/// not ASCII.
std::vector<TemplateToken> template_tokens(std::string_view text);

}  // namespace msprobe::inspect
