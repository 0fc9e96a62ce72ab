// SPDX-License-Identifier: Apache-2.0
// The result tables: a file for each task and format, or one for all tasks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/sinks/sink.hpp"
#include "report/writers.hpp"

namespace msprobe::compare {

struct TableOptions {
  std::string directory;
  std::string file;                      // one file of this name instead; "-" is stdout
  Existing existing = Existing::refuse;  // if that name exists
  std::vector<report::Format> formats;
  bool formats_chosen = false;   // otherwise a task's own usual format comes first
  std::string time;              // in the names of files
  Progress* progress = nullptr;  // null: no progress is shown
};

/// `DIR/[step/]compare_result[_rank]_TIMESTAMP`, without extension: the Python tool's name. `what` replaces
/// `compare_result`.
std::string result_stem(const std::string& directory, const CompareTask& task, const std::string& what,
                        const std::string& time);

struct JoinedPart {
  std::string step;
  std::string rank;
  std::shared_ptr<const report::Table> rows;
};

/// The rows of several tasks under one header, with the columns Step (if any part has one) and Rank in front.
/// All must have the same columns (throws UsageError otherwise). `objects`: further members of the JSON.
std::shared_ptr<const report::Table> joined_table(std::vector<JoinedPart> parts,
                                                  std::optional<std::vector<std::string>> objects = {});

std::unique_ptr<Sink> table_sink(const TableOptions& options);

}  // namespace msprobe::compare
