// SPDX-License-Identifier: Apache-2.0
// What the arguments of a communication entry say about who talks to whom.
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

/// A rank that an argument should name.
struct RankArgument {
  enum class State : std::uint8_t {
    absent,
    empty,      // null, 0, "", [] or {} in place of an object
    integer,    // an object with an integer as its value
    other,      // an object without
    no_object,  // anything else
  };
  State state = State::absent;
  std::int64_t value = 0;

  bool is_rank() const { return state == State::integer; }
};

/// Keyword arguments that name ranks.
enum RankKeyword : std::size_t { kSrc, kSrcGroup, kDst, kDstGroup, kGroupSrc, kGroupDst, kRankKeywords };

enum class GroupState : std::uint8_t { absent, empty, ranks, without_ranks, no_object };

/// One transfer of batch_isend_irecv.
struct Transfer {
  bool sends = false;
  std::int64_t peer = 0;
  std::int64_t tag = 0;
};

using RankList = std::shared_ptr<const std::vector<std::int64_t>>;

struct CommCall {
  std::array<RankArgument, kRankKeywords> keywords;
  /// Values of the positional integers; kNoRank where the value is none.
  std::vector<std::int64_t> integers;
  /// Type, as Python calls it, of a positional argument that is no object and stands before the first
  /// integer; empty if there is none.
  std::string odd_argument;
  GroupState group = GroupState::absent;  // keyword `group`
  RankList group_ranks;                   // in any argument
  std::string group_id;                   // if there is a group and it has no ranks
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

/// Does a whole group take part, rather than a sender and a receiver?
bool is_collective(const Communication& communication);

/// The rank that a call names as source or destination: by keyword, by its place in the group, or by the
/// first positional integer.
std::optional<std::int64_t> named_rank(const CommCall& call, bool source);

/// Entries of communication: their names begin with one of the prefixes, and the rest holds one of the words.
struct CommunicationNames {
  std::vector<std::string> prefixes;
  std::vector<std::string> words;

  bool has(std::string_view entry) const;
};

/// Reads the arguments of an entry. What is not understood is left out.
CommCall read_comm_call(const Entry& entry, RankListPool& pool);

}  // namespace msprobe::dump
