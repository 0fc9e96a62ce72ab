// SPDX-License-Identifier: Apache-2.0
// What the HTML report keeps of a pair of ranks while the others are compared: the cells of its table in
// columns, deflated, so that memory follows the rows and never the dumps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/imports.hpp"
#include "dump/communication.hpp"

namespace msprobe::compare {

/// All parts are raw deflate streams.
struct PackedRank {
  /// JSON: names of entries with their directions, enclosing modules, micro steps, dataflow and stacks, and
  /// which of them only the reference has; the columns with the texts that their cells have.
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
  /// Rows of the tables on the page ahead of the first bad one; nothing if there is none, or no room for it.
  std::optional<std::uint64_t> first_bad;

  std::int64_t number = 0;                 // of the rank
  std::vector<dump::Communication> calls;  // of the target, in order; none without a diagnosis
  std::vector<std::uint32_t> call_entries;
};

/// Calls of different ranks that belong together: a list of lists, each of ranks, by number among all, and
/// entries in turn.
std::string exchanges_json(const std::vector<PackedRank>& ranks, const std::vector<std::string>& steps);

/// With a diagnosis, entries of the reference alone stand behind the partner of the one before them. The
/// modules around entries are those of construct.json beside the target's dump.json, which need not exist or
/// may be broken. Of more than `room` rows those around what differs are kept, with that of number
/// `first_bad` (see row_sample.hpp).
PackedRank pack_rank(const RankRows& rows, std::optional<std::size_t> first_bad = std::nullopt,
                     std::size_t room = SIZE_MAX);

}  // namespace msprobe::compare
