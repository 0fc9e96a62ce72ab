// SPDX-License-Identifier: Apache-2.0
// What the viewer is told of a data base: what is in it, and of a comparison its colours and the words on
// them (docs/formats.md, "The graph database").
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "graph/database/database.hpp"

namespace msprobe::graph {

/// By what two runs are compared.
enum class ComparedBy : std::uint8_t { statistics, md5, tensors, structure };

/// What a data base has.
struct GraphExtent {
  std::optional<ComparedBy> task;  // none: a single run
  std::uint32_t micro_steps = 0;
  std::set<std::int64_t> ranks;
  std::set<std::int64_t> steps;
};

/// `summary`, `md5`, `all` or `structure`.
std::string_view task_name(ComparedBy task);
/// JSON: what columns mean.
std::string tool_tip_of(ComparedBy task);

/// Writes the table tb_config.
void write_config(const GraphExtent& extent, bool overflow_check, Database& database);

}  // namespace msprobe::graph
