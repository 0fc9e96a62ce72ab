// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "compare/static_graph/graph_files.hpp"
#include "compare/static_graph/graph_rows.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(statistic_csv)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe::compare;
  StaticGraphSide side;
  read_statistic_csv(*msprobe::fuzz_input(data, size), side);
  for (std::size_t i = 0; i < side.items.size(); ++i) {
    const GraphItem& item = side.items[i];
    if (item.time.empty()) throw std::logic_error("a row without a time");
    const GraphItem& other = side.items[side.items.size() - 1 - i];
    const std::size_t columns = graph_columns(msprobe::measuring::Mode::statistics).size();
    if (statistics_row(&item, &other).cells.size() != columns ||
        statistics_row(&item, nullptr).cells.size() != columns) {
      throw std::logic_error("a row with another number of cells");
    }
  }
}
