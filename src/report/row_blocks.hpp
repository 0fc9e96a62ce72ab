// SPDX-License-Identifier: Apache-2.0
// Formats rows in blocks on all threads and passes them on in order. Memory depends on the size of the
// blocks, not of the table. The ends of blocks depend only on the rows, so the bytes are the same for any
// number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "report/table.hpp"
#include "report/writers.hpp"
#include "support/parallel.hpp"

namespace msprobe::report {

/// Rows `first` up to, not including, `last`.
struct RowRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

inline constexpr std::size_t kBlocksAtOnce = 32;
inline constexpr std::size_t kBlockBytes = std::size_t{256} << 10;  // aimed at
inline constexpr std::size_t kMostRowsInBlock = 256;

/// `make(rows, block)` fills a recycled Block from any thread and returns how many bytes of text the rows
/// made; `take(block)` gets the blocks in order on the calling thread.
template <class Block, class Make, class Take>
void each_block(RowRange rows, const WriteOptions& options, Make make, Take take) {
  std::vector<Block> blocks(kBlocksAtOnce);
  std::vector<std::size_t> sizes(kBlocksAtOnce);
  std::size_t rows_in_block = 16;  // until the size of rows is known
  while (rows.first < rows.last) {
    const std::size_t count =
        std::min(kBlocksAtOnce, (rows.last - rows.first + rows_in_block - 1) / rows_in_block);
    const std::size_t end = std::min(rows.last, rows.first + count * rows_in_block);
    parallel_for(count, [&](std::size_t i) {
      const std::size_t first = rows.first + i * rows_in_block;
      sizes[i] = make(RowRange{first, std::min(end, first + rows_in_block)}, blocks[i]);
    });
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      take(blocks[i]);
      bytes += sizes[i];
    }
    if (options.on_rows) options.on_rows(end - rows.first);
    const std::size_t bytes_in_row = bytes / (end - rows.first) + 1;
    rows_in_block = std::clamp<std::size_t>(kBlockBytes / bytes_in_row, 1, kMostRowsInBlock);
    rows.first = end;
  }
}

}  // namespace msprobe::report
