// SPDX-License-Identifier: Apache-2.0
// Templates of Jinja as jinja2's lexer.py and parser.py read them, for template_rating.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::inspect {

/// Jinja itself refuses the text before it renders anything.
class BrokenTemplate : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Something that is not followed here. Jinja, or an extension of it, may read it.
class StrangeTemplate : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class TemplateKind : std::uint8_t {
  body,       // statements, one after the other
  text,       // outside of all tags, or printed by a block
  constant,   // a text
  number,     // also true, false and none
  name,       // `text` is the name
  attribute,  // of children[0]; `text` is its name
  item,       // children[0] [ children[1] ]
  slice,      // its up to three parts
  list,       // the elements of a list, a tuple or a dict; of a dict also the keys
  join,       // ~
  add,        // +
  multiply,   // * and %
  compute,    // - / // ** and signs: numbers alone
  compare,    // also not, in, is: a truth value
  choice,     // and, or, if: one of the children
  filter,     // children[0] | text(the others)
  test,       // children[0] is text(the others)
  call,       // children[0] (the others)
  keyword,    // text = children[0], among arguments
  spread,     // *children[0] or **children[0], among arguments
  assign,     // for, set, with: `children[0]` to the names of children[1]
  macro,      // text(the parameters as assign or name) of children[0]
};

struct TemplateNode {
  TemplateKind kind = TemplateKind::body;
  std::string text;
  std::vector<std::uint32_t> children;
  bool strange = false;  // a constant with an escape that is not followed
};

/// The nodes of the tree, each after its children. BrokenTemplate or StrangeTemplate if there is no tree.
std::vector<TemplateNode> parse_template(std::string_view text);

}  // namespace msprobe::inspect
