// SPDX-License-Identifier: Apache-2.0
// Finds where the rows of a csv file end, and their first fields, so that msprobe can continue a file that an
// interrupted process left incomplete.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::precheck {

struct RowEnd {
  std::string_view first;  // field
  std::uint64_t end = 0;   // after its line end
};

/// Calls `visit` for each complete row; returns where the last one ends. Line breaks in quotes do not end a
/// row. A first field beyond 4 KiB is cut off there.
std::uint64_t each_row_end(const ByteSource& file, const std::function<void(const RowEnd&)>& visit);

}  // namespace msprobe::precheck
