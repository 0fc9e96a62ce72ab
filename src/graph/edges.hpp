// SPDX-License-Identifier: Apache-2.0
// Finds the calls of different ranks that communicate with each other (docs/rules.md, "Communication between
// nodes").
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

/// The communication that the arguments of a call describe; null if the node is not a communication call.
std::shared_ptr<const dump::Communication> communication_of(std::string_view node, const dump::Entry& entry);

struct CommunicationCall {
  std::int64_t row = 0;
  std::string node;
  std::string status;  // the nodes of other ranks show this status
  std::shared_ptr<const dump::Communication> communication;
};

/// The calls of one side of a rank, in the order of its rows.
using RankCalls = std::vector<CommunicationCall>;
/// Does nothing if the node is not a communication call. `overflow_check`: the status is the overflow level,
/// not the result of the comparison.
void add_call(RankCalls& calls, std::int64_t row, std::string_view node, const NodeData& data,
              bool overflow_check);

/// Collects the calls of all ranks until all are known.
class Edges {
 public:
  void add(std::string_view data_source, std::int64_t step, std::int64_t rank, RankCalls calls);
  /// Receives the value of the column matched_distributed for each connected row, written in the style of
  /// `blank`.
  using Sink = std::function<void(std::int64_t rank, std::int64_t row, const std::string& json)>;
  void tell(const Sink& sink, const JsonWriter& blank = JsonWriter()) const;

 private:
  using Side = std::pair<std::int64_t, std::string>;  // step, data source
  struct CommunicatingRank {
    std::int64_t number = 0;
    RankCalls calls;
  };
  void tell_side(const std::vector<CommunicatingRank>& ranks, const Sink& sink,
                 const JsonWriter& blank) const;

  std::map<Side, std::vector<CommunicatingRank>> sides_;
};

}  // namespace msprobe::graph
