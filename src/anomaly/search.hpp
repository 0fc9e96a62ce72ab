// SPDX-License-Identifier: Apache-2.0
// Searches the data of all ranks for the entries where bad values began.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "anomaly/rank_scan.hpp"
#include "dump/communication_graph.hpp"

namespace msprobe::anomaly {

/// One rank of the step under analysis. A rank that could not be read has no scan and a reason.
struct RankInput {
  std::int64_t number = 0;
  std::string directory;
  std::string json;
  std::vector<std::uint32_t> processes = {};  // that see it; none: all do
  std::uint64_t bytes = 0;                    // if not all do
  std::string failure;
  RankScan scan;
};

enum class RootKind : std::uint8_t {
  produced,       // a compute entry made bad values of clean ones
  communication,  // a communication entry did
  external,       // a bad value that no recorded entry made came in here
  inf_to_nan,     // NaN out of inputs with Inf
  raised,         // the device raised NaN or Inf there, as task nan_check noted; nothing is known of inputs
};

enum class RootPhase : std::uint8_t { before, during, after, otherwise };

/// A rank that bad values came to.
struct Reached {
  std::size_t rank = 0;
  ScannedEntry entry;    // where
  std::size_t from = 0;  // the rank they came from
};

struct AnomalyRoot {
  std::size_t rank = 0;  // index
  RootKind kind = RootKind::produced;
  RootPhase phase = RootPhase::before;
  ScannedEntry entry;
  Bad inputs = 0;
  Bad outputs = 0;
  std::uint32_t layer = 0;
  std::uint32_t sub_layer = 0;
  bool contained = false;
  std::vector<Reached> path;               // in the order of reaching
  std::vector<std::int64_t> absent_ranks;  // members of its communication group that are not in the dump
};

/// The kinds of remarks during a search; the caller decides how to show them.
enum class Remark : std::uint8_t { detail, progress, warning };
using Tell = std::function<void(Remark kind, const std::string& text)>;

/// The communication of all ranks, to be matched.
std::vector<dump::RankCommunication> communication_of(const std::vector<RankInput>& ranks);

/// `all`: return every independent root, not only those of the first phase that finds any.
std::vector<AnomalyRoot> search_roots(const std::vector<RankInput>& ranks, const AnomalyRules& rules,
                                      bool all, const Tell& tell);

}  // namespace msprobe::anomaly
