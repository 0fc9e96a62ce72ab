// SPDX-License-Identifier: Apache-2.0
// The parts of a comparison: independent tasks, each with two dumps that belong together. A layout of dumps
// is a function that makes a plan; outputs see tasks and rows, never the layout.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/rows.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

struct CompareTask {
  std::string label;   // "step0/rank1"; empty for two files
  std::string target;  // what is compared, as the summary shows it
  std::string golden;
  /// Tasks of one chain run one after another, because each continues from the one before. Empty: a separate
  /// task.
  std::optional<std::string> chain;
  std::string step;  // labels of the columns where several tasks share one table
  std::string rank;
  std::string folder;  // of its results, below the output folder; empty or ending in /
  std::string prefix;  // of its results' names
  std::string suffix;
  std::string name = "compare_result";
  std::uint64_t bytes = 0;  // that it reads, as far as known
  /// Bytes that independent parts of the task read. Another process may compute one of `parts` parts before
  /// the task runs; its result goes as bytes to the process that runs the task. The functions are null if
  /// there are no such parts.
  std::uint64_t parted_bytes = 0;
  std::function<std::string(std::size_t part, std::size_t parts)> compute_part;
  std::function<void(std::string&& computed)> take_part;
  bool timed = true;                     // the time is part of the name
  bool workbook = false;                 // unless formats are chosen
  std::vector<std::uint32_t> processes;  // that see the data; empty: all do
  std::string unreachable;               // why no process sees it; empty: some do
  /// The result is null if an earlier task of the chain has already answered and no more was asked for.
  std::function<std::shared_ptr<const Rows>()> run;
};

struct TaskPlan {
  std::vector<CompareTask> tasks;
  std::vector<std::string> one_sided;  // "step0/rank3: only in target", …
  bool entries = false;                // the rows are those of entries: Rows::of_entries() is not null
  bool one_at_a_time = false;          // each task is parallel in itself and uses much memory
};

}  // namespace msprobe::compare
