// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "monitor/input/rows.hpp"

FUZZ_READER(monitor_csv)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe::monitor;
  MonitorRows rows(msprobe::fuzz_input(data, size), "actv");
  for (MonitorRow row; rows.next(row);) {
    if (row.values.size() != rows.statistics().size()) throw std::logic_error("a row of other columns");
    if (row.step < 0) throw std::logic_error("a step before the first");
  }
}
