// SPDX-License-Identifier: Apache-2.0
#include "graph/edges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "dump/communication_graph.hpp"
#include "graph/pair/release8.hpp"

namespace msprobe::graph {
namespace {

using dump::CommCall;
using dump::Communication;

constexpr std::string_view kCommunicationPrefix = "Distributed";
constexpr std::string_view kBatchOfTransfers = "batch_isend_irecv";

enum class Rooted : std::uint8_t { none, gives, takes };

/// Does the operation have one rank that sends to all others, or receives from them?
Rooted rooted(std::string_view operation) {
  constexpr std::array<std::string_view, 4> kGives = {"broadcast", "scatter", "broadcast_object_list",
                                                      "scatter_object_list"};
  constexpr std::array<std::string_view, 3> kTakes = {"reduce", "gather", "gather_object"};
  if (std::ranges::find(kGives, operation) != kGives.end()) return Rooted::gives;
  return std::ranges::find(kTakes, operation) != kTakes.end() ? Rooted::takes : Rooted::none;
}

/// The status of a node that its partners on other ranks show.
std::string status_of(const NodeData& data, bool overflow_check) {
  if (overflow_check && !data.overflow_level.empty()) return std::string(data.overflow_level);
  if (!overflow_check && data.release8.index) return index_text(data.release8);
  if (overflow_check || !data.precision_index) return "Nan";
  return fmt::format("{:g}", *data.precision_index);
}

/// The edges between one node and its partners on other ranks.
struct NodeEdges {
  bool sends = false;
  bool receives = false;
  std::map<std::size_t, std::size_t> partners;  // by place of the rank: the node
};

class SideEdges {
 public:
  SideEdges(const dump::CommGraph& graph, const std::vector<dump::RankCommunication>& ranks)
      : graph_(graph), ranks_(ranks), nodes_(graph.nodes()) {
    for (const dump::Exchange& exchange : graph.exchanges()) add(exchange);
  }

  const NodeEdges& of(std::size_t node) const { return nodes_[node]; }

 private:
  void add(const dump::Exchange& exchange) {
    if (exchange.receivers.empty()) return;
    const std::vector<std::size_t>& members = exchange.receivers;  // all ranks for a collective call
    const Communication& first = graph_.comm(members[0]);
    if (!dump::is_collective(first)) {
      for (const std::size_t from : exchange.senders) link({from}, members);
      return;
    }
    const Rooted kind = rooted(first.operation);
    if (kind == Rooted::none) return link(members, members);
    const auto root = std::ranges::find_if(members, [&](std::size_t node) {
      return dump::named_rank(graph_.comm(node).call, kind == Rooted::gives).value_or(0) ==
             ranks_[graph_.rank(node)].number;
    });
    if (root == members.end()) return;
    if (kind == Rooted::gives) {
      link({*root}, members);
    } else {
      link(members, {*root});
    }
  }

  void link(const std::vector<std::size_t>& senders, const std::vector<std::size_t>& receivers) {
    for (const std::size_t from : senders) {
      for (const std::size_t to : receivers) {
        if (graph_.rank(from) == graph_.rank(to)) continue;
        nodes_[from].sends = nodes_[to].receives = true;
        nodes_[from].partners.emplace(graph_.rank(to), to);
        nodes_[to].partners.emplace(graph_.rank(from), from);
      }
    }
  }

  const dump::CommGraph& graph_;
  const std::vector<dump::RankCommunication>& ranks_;
  std::vector<NodeEdges> nodes_;
};

std::string_view type_of(const NodeEdges& edges) {
  if (edges.sends && edges.receives) return "send_receive";
  return edges.sends ? "send" : "receive";
}

}  // namespace

bool is_communication(std::string_view node) {
  return node.starts_with(kCommunicationPrefix);
}

std::shared_ptr<const Communication> communication_of(std::string_view node, const dump::Entry& entry) {
  if (!is_communication(node)) return nullptr;
  const std::size_t begin = node.find('.');
  if (begin == std::string_view::npos) return nullptr;
  dump::RankListPool pool;
  auto communication = std::make_shared<Communication>();
  communication->operation = node.substr(begin + 1, node.find('.', begin + 1) - begin - 1);
  communication->backward = node.find(".backward", begin) != std::string_view::npos;
  communication->call = dump::read_comm_call(entry, pool);
  if (communication->operation == kBatchOfTransfers && communication->call.transfers.empty()) return nullptr;
  return communication;
}

void add_call(RankCalls& calls, std::int64_t row, std::string_view node, const NodeData& data,
              bool overflow_check) {
  if (data.communication)
    calls.push_back({row, std::string(node), status_of(data, overflow_check), data.communication});
}

void Edges::add(std::string_view data_source, std::int64_t step, std::int64_t rank, RankCalls calls) {
  sides_[{step, std::string(data_source)}].push_back({rank, std::move(calls)});
}

void Edges::tell(const Sink& sink, const JsonWriter& blank) const {
  for (const auto& [side, ranks] : sides_) tell_side(ranks, sink, blank);
}

void Edges::tell_side(const std::vector<CommunicatingRank>& ranks, const Sink& sink,
                      const JsonWriter& blank) const {
  std::vector<dump::RankCommunication> communication;
  std::vector<const CommunicationCall*> calls;  // the calls of the nodes
  for (const CommunicatingRank& rank : ranks) {
    dump::RankCommunication& own = communication.emplace_back();
    own.number = rank.number;
    for (const CommunicationCall& call : rank.calls) {
      own.calls.push_back(call.communication.get());
      calls.push_back(&call);
    }
  }
  const dump::CommGraph graph(communication, {});
  const SideEdges edges(graph, communication);
  const auto place_of = [&](std::size_t node) { return communication[graph.rank(node)].number; };
  const auto put_edge = [&](JsonWriter& json, std::string_view type, const auto& partners) {
    json.open_object();
    json.member("communications_type", type);
    json.open_object("nodes_info");
    for (const std::size_t partner : partners) {
      json.member(std::to_string(place_of(partner)),
                  std::vector<std::string>{calls[partner]->status, calls[partner]->node});
    }
    json.close();
    json.close();
  };
  for (std::size_t node = 0; node < calls.size(); ++node) {
    const NodeEdges& own = edges.of(node);
    if (own.partners.empty()) continue;
    std::vector<std::size_t> partners;
    for (const auto& [place, partner] : own.partners) partners.push_back(partner);
    JsonWriter json = blank;
    put_edge(json, type_of(own), partners);
    sink(place_of(node), calls[node]->row, json.take());
  }
}

}  // namespace msprobe::graph
