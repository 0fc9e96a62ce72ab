// SPDX-License-Identifier: Apache-2.0
// Reads the folders of one rank and step of a static-graph dump.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compare/rows.hpp"
#include "dump/side.hpp"
#include "support/byte_source.hpp"

namespace msprobe::compare {

/// One tensor of a kernel: a `.npy` file or a row of a statistic.csv.
struct GraphItem {
  std::string key;   // op.task.io.slot: pairs both sides
  std::string time;  // decimal digits without leading zeros; orders the items of one key
  std::string file;  // the `.npy`, or the statistic.csv
  std::string dtype;
  std::string shape;
  std::array<double, dump::kStatistics> statistics{};  // of a statistic.csv
};

struct StaticGraphSide {
  measuring::Mode mode = measuring::Mode::tensor;  // or statistics
  std::vector<GraphItem> items;                    // `.npy` by name, rows in file order
  std::uint64_t unnamed = 0;                       // `.npy` files whose name is not that of a dumped tensor
  std::vector<std::string> gaps;                   // "FILE has no column X"
};

/// Reads tensors if any of the folders has `.npy` files. Throws IoError and FormatError for files that cannot
/// be read.
StaticGraphSide read_graph_side(const std::vector<std::string>& folders);

/// Adds the rows of a statistic.csv. Throws FormatError with the line for a row of fewer than 13 columns and
/// for a value that is no number.
void read_statistic_csv(const ByteSource& file, StaticGraphSide& side);

/// Parses key and time of `Type.op.task.stream.time.output.0.DefaultFormat.npy`; returns false for another
/// name.
bool read_graph_name(std::string_view name, GraphItem& item);

inline constexpr std::size_t kMaxGraphItems = 5'000'000;

}  // namespace msprobe::compare
