// SPDX-License-Identifier: Apache-2.0
#include "dump/communication.hpp"

#include <algorithm>

namespace msprobe::dump {
namespace {

constexpr std::array<std::string_view, kRankKeywords> kKeywordNames = {"src",       "src_group", "dst",
                                                                       "dst_group", "group_src", "group_dst"};

std::optional<std::int64_t> integer(const Entry& entry, Entry::Index node) {
  const auto value = entry.integer(node);
  return value == kNoRank ? std::nullopt : value;
}

bool is_text(const Entry& entry, Entry::Index node, std::string_view text) {
  return entry.is(node, NodeKind::string) && entry.text(node) == text;
}

std::optional<std::int64_t> integer_value(const Entry& entry, Entry::Index argument) {
  return integer(entry, entry.find(argument, "value"));
}

/// The operations of the sender and of the receiver.
using Transmission = std::pair<std::string_view, std::string_view>;
constexpr std::array<Transmission, 3> kTransmissions = {
    {{"send", "recv"}, {"isend", "irecv"}, {"send_object_list", "recv_object_list"}}};

class CommunicationReader {
 public:
  CommunicationReader(const Entry& entry, RankListPool& pool) : entry_(entry), pool_(pool) {}

  CommCall read() {
    if (!entry_.is(0, NodeKind::object)) return std::move(call_);
    if (const auto arguments = entry_.find(0, "input_args"); arguments != Entry::kNone) positional(arguments);
    if (const auto arguments = entry_.find(0, "input_kwargs"); arguments != Entry::kNone) named(arguments);
    return std::move(call_);
  }

 private:
  void positional(Entry::Index arguments) {
    if (!entry_.is(arguments, NodeKind::array)) return;
    entry_.children(arguments, [&](Entry::Index item) {
      if (!entry_.is(item, NodeKind::object)) {
        transfers(item);
      } else if (is_text(entry_, entry_.find(item, "type"), "int")) {
        call_.integers.push_back(integer_value(entry_, item).value_or(kNoRank));
      } else {
        group(item);
      }
    });
  }

  void named(Entry::Index arguments) {
    if (!entry_.is(arguments, NodeKind::object)) return;
    for (std::size_t i = 0; i < kRankKeywords; ++i)
      call_.keywords[i] = integer_value(entry_, entry_.find(arguments, kKeywordNames[i]));
    call_.tag = integer_value(entry_, entry_.find(arguments, "tag")).value_or(0);
    if (const auto list = entry_.find(arguments, "p2p_op_list"); list != Entry::kNone) transfers(list);
    call_.named_group = group(entry_.find(arguments, "group"));
  }

  /// Whether the object is a process group with its ranks.
  bool group(Entry::Index node) {
    if (const auto id = entry_.find(node, "group_id");
        entry_.is(id, NodeKind::string) && entry_.find(node, "peer") == Entry::kNone) {
      call_.group_id = entry_.text(id);
    }
    const Entry::Index list = entry_.find(node, "group_ranks");
    if (!entry_.is(list, NodeKind::array)) return false;
    std::vector<std::int64_t> ranks;
    entry_.children(list, [&](Entry::Index item) {
      if (const auto rank = integer(entry_, item)) ranks.push_back(*rank);
    });
    call_.group_ranks = pool_.keep(std::move(ranks));
    return true;
  }

  void transfers(Entry::Index list) {
    if (!entry_.is(list, NodeKind::array)) return;
    entry_.children(list, [&](Entry::Index item) {
      if (!entry_.is(item, NodeKind::object)) return;
      const auto peer = integer(entry_, entry_.find(item, "peer"));
      const Entry::Index operation = entry_.find(item, "op");
      const bool sends = is_text(entry_, operation, "isend") || is_text(entry_, operation, "send");
      const bool receives = is_text(entry_, operation, "irecv") || is_text(entry_, operation, "recv");
      if (!peer || (!sends && !receives)) return;
      call_.transfers.push_back({sends, *peer, integer(entry_, entry_.find(item, "tag")).value_or(0)});
    });
  }

  const Entry& entry_;
  RankListPool& pool_;
  CommCall call_;
};

}  // namespace

bool is_send(std::string_view operation) {
  return std::ranges::find(kTransmissions, operation, &Transmission::first) != kTransmissions.end();
}
bool is_receive(std::string_view operation) {
  return std::ranges::find(kTransmissions, operation, &Transmission::second) != kTransmissions.end();
}

std::string partner_operation(const std::string& operation) {
  for (const auto& [sender, receiver] : kTransmissions) {
    if (operation == sender) return std::string(receiver);
    if (operation == receiver) return std::string(sender);
  }
  return operation;
}

std::optional<std::int64_t> named_rank(const CommCall& call, bool source) {
  for (const std::size_t k : {source ? kSrc : kDst, source ? kSrcGroup : kDstGroup}) {
    if (call.keywords[k]) return call.keywords[k];
  }
  const std::optional<std::int64_t> in_group = call.keywords[source ? kGroupSrc : kGroupDst];
  if (in_group && call.group_ranks && *in_group >= 0 &&
      static_cast<std::size_t>(*in_group) < call.group_ranks->size()) {
    return (*call.group_ranks)[static_cast<std::size_t>(*in_group)];
  }
  if (!call.integers.empty() && call.integers[0] != kNoRank) return call.integers[0];
  return std::nullopt;
}

bool is_collective(const Communication& communication) {
  return communication.call.transfers.empty() && !is_send(communication.operation) &&
         !is_receive(communication.operation);
}

bool CommunicationNames::has(std::string_view entry) const {
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) {
    if (!entry.starts_with(prefix)) return false;
    const std::string_view rest = entry.substr(prefix.size());
    return std::ranges::any_of(
        words, [&](const std::string& word) { return rest.find(word) != std::string_view::npos; });
  });
}

RankList RankListPool::keep(std::vector<std::int64_t> ranks) {
  return *lists_.insert(std::make_shared<const std::vector<std::int64_t>>(std::move(ranks))).first;
}

CommCall read_comm_call(const Entry& entry, RankListPool& pool) {
  return CommunicationReader(entry, pool).read();
}

}  // namespace msprobe::dump
