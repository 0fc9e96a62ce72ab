// SPDX-License-Identifier: Apache-2.0
// Where the rows of a csv file end, and what they begin with: what is needed to go on with a file that
// somebody stopped writing anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::precheck {

struct RowEnd {
  std::string_view first;   // field
  std::uint64_t begin = 0;  // of the row
  std::uint64_t end = 0;    // behind its line end
};

/// Calls `visit` for each row that is whole; returns where the last one ends. Line breaks in quotes end no
/// row. A first field beyond 4 KiB is cut off there.
std::uint64_t each_row_end(const ByteSource& file, const std::function<void(const RowEnd&)>& visit);

}  // namespace msprobe::precheck
