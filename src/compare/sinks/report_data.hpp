// SPDX-License-Identifier: Apache-2.0
// The data that the HTML report keeps of a pair of ranks while others are compared: the cells of its table in
// columns, deflated, so that memory grows with the rows and not with the dumps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "dump/communication.hpp"

namespace msprobe::compare {

/// All parts are raw deflate streams.
struct PackedRank {
  /// JSON: the names of entries with their directions, enclosing modules, micro steps, dataflow and stacks,
  /// and a mark for entries that only golden has; the columns with the texts of their cells.
  std::string names;
  struct Chunk {
    std::uint64_t rows = 0;
    /// Little-endian arrays, each padded to eight bytes: verdicts (u8, 3: only in golden); for both names the
    /// entry (u32, the highest bit set if the text is the whole name and not what follows the entry); with a
    /// diagnosis the error that is explained (the upper u16 of an f32); then for each column
    /// the number of the cell's text (u32, 0: it is a number) and, where any cell of the chunk is one, the
    /// numbers (f64).
    std::string columns;
  };
  std::vector<Chunk> chunks;
  std::uint64_t left_out = 0;  // rows that the page has no room for
  /// How many rows of the tables on the page come before the first bad row; nothing if that row does not
  /// exist or has no room.
  std::optional<std::uint64_t> first_bad;

  std::int64_t number = 0;                 // of the rank
  std::vector<dump::Communication> calls;  // of the target, in order; none without a diagnosis
  std::vector<std::uint32_t> call_entries;
};

/// Calls of different ranks that belong together: a list of lists, each with ranks (by number among all) and
/// entries in turn.
std::string exchanges_json(const std::vector<PackedRank>& ranks, const std::vector<std::string>& steps);

/// With a diagnosis, an entry that golden alone has comes after the partner of the entry before it. The
/// modules around entries are those of construct.json beside the target's dump.json, which may be missing or
/// broken. If there are more than `room` rows, those around differences are kept, including row `first_bad`
/// (see row_sample.hpp).
PackedRank pack_rank(const RankRows& rows, std::optional<std::size_t> first_bad = std::nullopt,
                     std::size_t room = SIZE_MAX);

}  // namespace msprobe::compare
