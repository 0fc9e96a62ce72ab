// SPDX-License-Identifier: Apache-2.0
// Matches the communication entries of different ranks, and finds their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "dump/communication.hpp"

namespace msprobe::dump {

/// The communication of one rank, in order. The calls must outlive the graph.
struct RankCommunication {
  std::int64_t number = 0;
  std::vector<const Communication*> calls;
};

/// Values that go from some entries into others in one go: a collective call, or one transfer. Nodes ascend.
struct Exchange {
  std::vector<std::size_t> senders;
  std::vector<std::size_t> receivers;
  std::uint32_t layer = 0;
};

/// Communication entries matched by exact group (or by sender, receiver and tag) and running number. Nodes
/// are numbered rank by rank. A batch of transfers takes part in several exchanges, any other entry in one.
class CommGraph {
 public:
  /// `names_source`: operations with an argument that names the sending rank.
  CommGraph(const std::vector<RankCommunication>& ranks,
            const std::set<std::string, std::less<>>& names_source);

  std::size_t nodes() const { return nodes_.size(); }
  /// The first node of a rank; also for the number of ranks, which gives the number of nodes.
  std::size_t first(std::size_t rank) const { return first_[rank]; }
  std::size_t rank(std::size_t node) const { return nodes_[node].rank; }
  const Communication& comm(std::size_t node) const { return *nodes_[node].comm; }

  /// A layer counts the communication on the longest way from the first communication of any rank. The layer
  /// in which the entry's values are sent:
  std::uint32_t giving_layer(std::size_t node) const { return nodes_[node].giving; }
  /// and the layer in which it has received all values of others:
  std::uint32_t done_layer(std::size_t node) const { return nodes_[node].done; }

  /// The exchanges by layer.
  const std::vector<Exchange>& exchanges() const { return exchanges_; }

  /// The calls contradict each other, so that layers are only places in the ranks' own order.
  bool contradictory() const { return contradictory_; }

  /// Says where ranks that exchange data recorded different numbers of calls, so that the n-th calls may not
  /// belong together; empty if the numbers agree.
  const std::string& uneven() const { return uneven_; }

 private:
  struct GraphCall {
    std::size_t rank = 0;
    const Communication* comm = nullptr;
    std::uint32_t giving = 0;
    std::uint32_t done = 0;
  };

  void match(const std::vector<RankCommunication>& ranks,
             const std::set<std::string, std::less<>>& names_source);
  void find_layers();

  std::vector<GraphCall> nodes_;
  std::vector<std::size_t> first_;
  std::vector<Exchange> exchanges_;
  bool contradictory_ = false;
  std::string uneven_;
};

}  // namespace msprobe::dump
