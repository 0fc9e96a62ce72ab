// SPDX-License-Identifier: Apache-2.0
// The interface through which writers read a graph, whatever its origin: one rank, a rank with its partner,
// or several ranks merged into one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/communication.hpp"
#include "graph/data/item_texts.hpp"
#include "model_tree/tree.hpp"

namespace msprobe::graph {

/// The result of a node by the rules of releases 8.x, if the user asked for them.
struct Release8 {
  std::optional<double> index;   // 0 to 1
  bool is_real = false;          // written as a real number, even if it is 0 or 1
  std::string_view result = {};  // the result for checksums: `pass` or `Different`
};

struct NodeData {
  std::vector<ItemText> items;      // in the order of the entry
  std::string_view overflow_level;  // empty: no overflow
  std::optional<double> precision_index;
  std::vector<std::string_view> partner;  // the names of its ancestors and its own; empty: no partner
  Release8 release8;
  std::string parallel_merge_info;  // JSON list of sentences, or empty
  // The judgement of a node under test; the members are empty if the node was not judged.
  std::string_view origin;                                   // where its error comes from
  std::optional<double> error;                               // relative, the largest
  std::string_view finding;                                  // the evidence that it is to blame
  std::shared_ptr<const dump::Communication> communication;  // only of a communication call
};

class NodeSource {
 public:
  virtual ~NodeSource() = default;

  virtual const model_tree::ModelTree& tree() const = 0;
  /// The value of dump_data_dir.
  virtual std::optional<std::string> tensor_folder() const = 0;
  /// The data of one node; several threads may call at once. Throws IoError, FormatError.
  virtual NodeData data(model_tree::NodeIndex node) const = 0;
};

}  // namespace msprobe::graph
