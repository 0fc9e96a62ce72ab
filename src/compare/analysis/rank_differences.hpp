// SPDX-License-Identifier: Apache-2.0
// Finds the entries of one rank that differ, and the calls of communication between which they are. The
// search for the first difference needs no more. Nothing but the communication grows with the rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/communication.hpp"
#include "pairing/rules.hpp"
#include "support/byte_source.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

/// An entry that may be the first difference.
struct FoundEntry {
  std::string name;
  std::uint32_t sub_layer = 0;  // compute entries since the communication before it
  std::string info;             // its object in diff_analyze_*.json
  std::string what;             // the first output that differs, in words
  std::string at;               // the user's own line, if a stack was recorded
};

struct ComparedCommunication : dump::Communication {
  std::string name;
  std::uint32_t sub_layer = 0;
  std::optional<FoundEntry> found;  // if it differs

  bool differs() const { return found.has_value(); }
};

struct RankDifferences {
  std::string label;
  std::int64_t number = 0;
  std::uint64_t entries = 0;
  std::uint64_t differing = 0;
  Coverage coverage;            // of the tensors of both sides
  bool mapping_applies = true;  // as in RankResult
  std::vector<ComparedCommunication> comms;
  /// The first differing compute entry before each communication, and after the last.
  std::vector<std::optional<FoundEntry>> first_in;
};

inline constexpr int kDifferenceIndent = 2;  // of diff_analyze_*.json

/// Receives the parts of `compare_result_{rank}_*.json` in order.
using JsonSink = std::function<void(std::string_view)>;

/// Examines all entries of a rank, and writes them to `json` as the Python tool does.
RankDifferences find_differences(const verdict::RankResult& result, std::int64_t number,
                                 const pairing::Rules& rules, const JsonSink& json);

}  // namespace msprobe::compare
