// SPDX-License-Identifier: Apache-2.0
// A graph as it is written, wherever it comes from: one rank, a rank with its partner, or ranks merged into
// one.
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

/// How a node compares by the rules of releases 8.x, where it is asked for.
struct Release8 {
  std::optional<double> index;   // 0 to 1
  bool is_real = false;          // is written as a real number, even if it is 0 or 1
  std::string_view result = {};  // of checksums: `pass` or `Different`
};

struct NodeData {
  std::vector<ItemText> items;      // in the order of the entry
  std::string_view overflow_level;  // empty: none
  std::optional<double> precision_index;
  std::vector<std::string_view> partner;  // the names of its ancestors and its own; empty: there is none
  Release8 release8;
  std::string parallel_merge_info;  // JSON list of sentences, or empty
  // Of a node under test that was judged; empty: nobody did.
  std::string_view origin;                                   // where its error comes from
  std::optional<double> error;                               // relative, the largest
  std::string_view finding;                                  // the evidence that it is to blame
  std::shared_ptr<const dump::Communication> communication;  // of a call of communication
};

class NodeSource {
 public:
  virtual ~NodeSource() = default;

  virtual const model_tree::ModelTree& tree() const = 0;
  /// What dump_data_dir says.
  virtual std::optional<std::string> tensor_folder() const = 0;
  /// Of one node; several threads may ask at once. Throws IoError, FormatError.
  virtual NodeData data(model_tree::NodeIndex node) const = 0;
};

}  // namespace msprobe::graph
