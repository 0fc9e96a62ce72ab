// SPDX-License-Identifier: Apache-2.0
// The configuration that the viewer reads from a database: its extent and, for a comparison, the colours and
// their descriptions (docs/formats.md, "The graph database").
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "database/output_database.hpp"

namespace msprobe::graph {

/// The data by which two runs are compared.
enum class ComparedBy : std::uint8_t { statistics, md5, tensors, structure };

/// The extent of a database.
struct GraphExtent {
  std::optional<ComparedBy> task;  // nothing: a single run
  std::uint32_t micro_steps = 0;
  std::set<std::int64_t> ranks;
  std::set<std::int64_t> steps;
};

/// `summary`, `md5`, `all` or `structure`.
std::string_view task_name(ComparedBy task);
/// The meanings of the columns, as JSON.
std::string tool_tip_of(ComparedBy task);

/// Writes the table tb_config.
void write_config(const GraphExtent& extent, bool overflow_check, const database::OutputDatabase& output);

}  // namespace msprobe::graph
