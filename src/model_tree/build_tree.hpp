// SPDX-License-Identifier: Apache-2.0
// Makes the tree of a rank from its construct.json, the names in its dump.json and its stack.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dump/stack_json.hpp"
#include "model_tree/tree.hpp"
#include "support/byte_source.hpp"
#include "support/text_pool.hpp"

namespace msprobe::model_tree {

/// construct.json: which member is inside which, in the order of the file.
struct Construct {
  struct ConstructMember {
    std::uint32_t parent = 0;  // a text in the pool; 0 without a parent
    std::uint32_t micro_step = 0;
  };
  TextTable names;                       // one per member; 0, the empty text, is no member
  std::vector<ConstructMember> members;  // by number
  TextPool parents;
  bool numbered = false;  // the dump contains micro steps
  std::uint32_t last_step = 0;

  std::string_view parent(std::uint32_t member) const { return parents.at(members[member].parent); }
  bool has(std::string_view name) const { return number_of(name) != 0; }
  /// Returns 0 if there is no such member.
  std::uint32_t number_of(std::string_view name) const;
};
Construct read_construct(const ByteSource& file);

struct TreeInput {
  const Construct& construct;
  const TextTable& entries;  // names of dump.json in its order
  const dump::StackTable& stacks;
  bool is_mindspore = false;
};

struct BuiltTree {
  ModelTree tree;
  std::vector<std::string> unconnected;  // nodes without a way to the root, which become its children
};
BuiltTree build_tree(const TreeInput& input);

}  // namespace msprobe::model_tree
