// SPDX-License-Identifier: Apache-2.0
#include "graph/edges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>
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

/// Has the operation one rank that gives to all others, or takes from them?
Rooted rooted(std::string_view operation) {
  constexpr std::array<std::string_view, 4> kGives = {"broadcast", "scatter", "broadcast_object_list",
                                                      "scatter_object_list"};
  constexpr std::array<std::string_view, 3> kTakes = {"reduce", "gather", "gather_object"};
  if (std::ranges::find(kGives, operation) != kGives.end()) return Rooted::gives;
  return std::ranges::find(kTakes, operation) != kTakes.end() ? Rooted::takes : Rooted::none;
}

/// Does the call name its partners where the Python tool looks for them?
bool has_usual_arguments(const Communication& communication) {
  const CommCall& call = communication.call;
  const std::string& operation = communication.operation;
  if (dump::is_send(operation)) return call.keywords[dump::kDst].has_value();
  if (dump::is_receive(operation)) return call.keywords[dump::kSrc].has_value();
  if (operation == kBatchOfTransfers || !call.named_group) return false;
  if (operation == "broadcast" || operation == "reduce") {
    return !call.integers.empty() && !call.keywords[dump::kSrc].has_value() &&
           !call.keywords[dump::kDst].has_value();
  }
  if (operation == "scatter") return call.keywords[dump::kSrc].has_value();
  return operation != "gather" || call.keywords[dump::kDst].has_value();
}

/// Releases 8.x recognize the first output of a transfer by this text; empty without an output.
std::string first_output(std::string_view node, const NodeData& data) {
  const std::string key = std::string(node) + ".output.0";
  std::string told;
  for (const ItemText& item : data.items) {
    if (item.key != key) continue;
    for (const std::string_view name : {"dtype", "shape", "Max", "Min", "Mean", "Norm"})
      told += std::string(item.member(name)) + ',';
  }
  return told;
}

/// What the nodes of others tell of one.
std::string status_of(const NodeData& data, bool overflow_check) {
  if (overflow_check && !data.overflow_level.empty()) return std::string(data.overflow_level);
  if (!overflow_check && data.release8.index) return index_text(data.release8);
  if (overflow_check || !data.precision_index) return "Nan";
  return fmt::format("{:g}", *data.precision_index);
}

/// The edges of one node.
struct NodeEdges {
  bool sends = false;
  bool receives = false;
  std::map<std::size_t, std::size_t> partners;  // by place of the rank: the node
};

class SideEdges {
 public:
  /// Of `may_send` it is asked whether the one transfer can be the other one's.
  using MaySend = std::function<bool(std::size_t from, std::size_t to)>;
  SideEdges(const dump::CommGraph& graph, const std::vector<dump::RankCommunication>& ranks,
            const MaySend& may_send)
      : graph_(graph), ranks_(ranks), may_send_(may_send), nodes_(graph.nodes()) {
    for (const dump::Exchange& exchange : graph.exchanges()) add(exchange);
  }

  const NodeEdges& of(std::size_t node) const { return nodes_[node]; }

 private:
  void add(const dump::Exchange& exchange) {
    if (exchange.receivers.empty()) return;
    const std::vector<std::size_t>& members = exchange.receivers;  // all, where it is a collective call
    const Communication& first = graph_.comm(members[0]);
    if (!dump::is_collective(first)) {
      for (const std::size_t from : exchange.senders) {
        if (may_send_(from, members[0])) link({from}, members);
      }
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
  MaySend may_send_;
  std::vector<NodeEdges> nodes_;
};

/// The transfers of batches: each finds that of the other rank by the ranks of both and a running number.
class BatchPartners {
 public:
  /// Calls are added in the order of their nodes.
  void add(std::size_t node, std::int64_t rank, const std::vector<dump::Transfer>& transfers) {
    for (const dump::Transfer& each : transfers) nodes_[{rank, each.peer, each.sends}].push_back(node);
  }

  /// Nodes, by transfer; none where the other rank has no such. Asked in the order of the calls.
  std::vector<std::optional<std::size_t>> of(std::int64_t rank,
                                             const std::vector<dump::Transfer>& transfers) {
    std::vector<std::optional<std::size_t>> found;
    for (const dump::Transfer& each : transfers) {
      const std::size_t number = asked_[{rank, each.peer, each.sends}]++;
      const auto others = nodes_.find({each.peer, rank, !each.sends});
      found.push_back(others != nodes_.end() && number < others->second.size()
                          ? std::optional(others->second[number])
                          : std::nullopt);
    }
    return found;
  }

 private:
  using Way = std::tuple<std::int64_t, std::int64_t, bool>;  // rank, peer, sends
  std::map<Way, std::vector<std::size_t>> nodes_;
  std::map<Way, std::size_t> asked_;
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

void RankCalls::add(std::int64_t row, std::string_view node, const NodeData& data) {
  if (!data.communication) return;
  const bool transfer =
      dump::is_send(data.communication->operation) || dump::is_receive(data.communication->operation);
  calls_.push_back({row, std::string(node), status_of(data, overflow_check_),
                    with_outputs_ && transfer ? first_output(node, data) : "", data.communication});
}

void Edges::add(std::string_view data_source, std::int64_t step, std::int64_t rank, RankCalls calls) {
  sides_[{step, std::string(data_source)}].push_back({rank, std::move(calls)});
}

void Edges::tell(const Sink& sink, const JsonWriter& blank) const {
  for (const auto& [side, ranks] : sides_) tell_side(ranks, sink, blank);
}

void Edges::tell_side(const std::vector<Rank>& ranks, const Sink& sink, const JsonWriter& blank) const {
  std::vector<dump::RankCommunication> communication;
  std::vector<const RankCalls::Call*> calls;  // of the nodes
  BatchPartners batches;
  for (const Rank& rank : ranks) {
    dump::RankCommunication& own = communication.emplace_back();
    own.number = rank.number;
    for (const RankCalls::Call& call : rank.calls.calls_) {
      const bool batch = traits_.as_release8 && call.communication->operation == kBatchOfTransfers;
      if (batch) batches.add(calls.size(), rank.number, call.communication->call.transfers);
      if (traits_.keywords_only && !batch && !has_usual_arguments(*call.communication)) continue;
      own.calls.push_back(call.communication.get());
      calls.push_back(&call);
    }
  }
  const dump::CommGraph graph(communication, {});
  const SideEdges edges(graph, communication, [&](std::size_t from, std::size_t to) {
    return !traits_.as_release8 || calls[from]->output == calls[to]->output;
  });
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
    const Communication& call = *calls[node]->communication;
    if (traits_.as_release8 && call.operation == kBatchOfTransfers) {
      const auto partners = batches.of(place_of(node), call.call.transfers);
      JsonWriter json = blank;
      if (partners.size() > 1) json.open_list();
      for (std::size_t i = 0; i < partners.size(); ++i) {
        if (!partners[i]) continue;
        if (partners.size() > 1) json.element();
        put_edge(json, call.call.transfers[i].sends ? "send" : "receive", std::array{*partners[i]});
      }
      const bool any = std::ranges::any_of(partners, [](const auto& each) { return each.has_value(); });
      if (partners.size() > 1) json.close();
      if (any) sink(place_of(node), calls[node]->row, json.take());
      continue;
    }
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
