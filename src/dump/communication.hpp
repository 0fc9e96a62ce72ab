// SPDX-License-Identifier: Apache-2.0
// Reads from the arguments of a communication entry which ranks exchange data.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"

namespace msprobe::dump {

/// Keyword arguments that name ranks.
enum RankKeyword : std::size_t { kSrc, kSrcGroup, kDst, kDstGroup, kGroupSrc, kGroupDst, kRankKeywords };

/// One transfer of batch_isend_irecv.
struct Transfer {
  bool sends = false;
  std::int64_t peer = 0;
  std::int64_t tag = 0;
};

using RankList = std::shared_ptr<const std::vector<std::int64_t>>;

struct CommCall {
  std::array<std::optional<std::int64_t>, kRankKeywords> keywords;  // those whose value is an integer
  /// Values of the positional integers; kNoRank where there is no value.
  std::vector<std::int64_t> integers;
  RankList group_ranks;      // in any argument
  bool named_group = false;  // the keyword `group` has them
  std::string group_id;      // if the group has no ranks
  std::vector<Transfer> transfers;
  std::int64_t tag = 0;
};

inline constexpr std::int64_t kNoRank = INT64_MIN;

/// Groups are few and calls are many, so that equal lists of ranks are kept once.
class RankListPool {
 public:
  RankList keep(std::vector<std::int64_t> ranks);

 private:
  struct Less {
    bool operator()(const RankList& a, const RankList& b) const { return *a < *b; }
  };
  std::set<RankList, Less> lists_;
};

/// One call of communication.
struct Communication {
  std::string operation;  // all_reduce
  bool backward = false;  // a backward entry
  CommCall call;
};

bool is_send(std::string_view operation);
bool is_receive(std::string_view operation);
/// The operation on the other side of a call: recv for send, and so on; itself for those of a group.
std::string partner_operation(const std::string& operation);

/// Whether a whole group takes part, rather than a sender and a receiver.
bool is_collective(const Communication& communication);

/// The rank that a call names as source or destination: by keyword, by its place in the group, or by the
/// first positional integer.
std::optional<std::int64_t> named_rank(const CommCall& call, bool source);

/// The entries of communication: their names begin with one of the prefixes, and the rest of the name has one
/// of the words.
struct CommunicationNames {
  std::vector<std::string> prefixes;
  std::vector<std::string> words;

  bool has(std::string_view entry) const;
};

/// Reads the arguments of an entry. Leaves out arguments that it does not understand.
CommCall read_comm_call(const Entry& entry, RankListPool& pool);

}  // namespace msprobe::dump
