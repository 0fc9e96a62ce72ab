// SPDX-License-Identifier: Apache-2.0
// Which calls of different ranks belong together (docs/rules.md, "Communication between nodes").
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dump/communication.hpp"
#include "dump/entry.hpp"
#include "graph/data/node_source.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {

/// The column is_distributed of a node.
bool is_communication(std::string_view node);

/// What the arguments of a call of communication say; null for the node of anything else.
std::shared_ptr<const dump::Communication> communication_of(std::string_view node, const dump::Entry& entry);

/// The calls of one side of a rank, in the order of its rows.
class RankCalls {
 public:
  /// `overflow_check`: others tell its overflow level, not how its values compare.
  explicit RankCalls(bool overflow_check) : overflow_check_(overflow_check) {}

  /// Nothing if it is no call of communication.
  void add(std::int64_t row, std::string_view node, const NodeData& data);

 private:
  friend class Edges;
  struct Call {
    std::int64_t row = 0;
    std::string node;
    std::string status;  // what the nodes of others tell of this one
    std::shared_ptr<const dump::Communication> communication;
  };
  bool overflow_check_;
  std::vector<Call> calls_;
};

/// The calls of all ranks; they are held until all are known.
class Edges {
 public:
  void add(std::string_view data_source, std::int64_t step, std::int64_t rank, RankCalls calls);
  /// Hands over what the column matched_distributed of each connected row says, as `blank` writes it.
  using Sink = std::function<void(std::int64_t rank, std::int64_t row, const std::string& json)>;
  void tell(const Sink& sink, const JsonWriter& blank = JsonWriter()) const;

 private:
  using Side = std::pair<std::int64_t, std::string>;  // step, data source
  struct Rank {
    std::int64_t number = 0;
    RankCalls calls;
  };
  void tell_side(const std::vector<Rank>& ranks, const Sink& sink, const JsonWriter& blank) const;

  std::map<Side, std::vector<Rank>> sides_;
};

}  // namespace msprobe::graph
