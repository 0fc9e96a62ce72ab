// SPDX-License-Identifier: Apache-2.0
// One kind of output. A comparison gives its rows to every sink that the user asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/imports.hpp"
#include "compare/rows.hpp"
#include "compare/task.hpp"
#include "diagnosis/conclusion.hpp"
#include "support/packet.hpp"

namespace msprobe::compare {

/// What is kept of a task when its rows are written and gone.
struct TaskSummary {
  std::string label;  // "step0/rank1"; empty for two files
  std::string step;   // its parts; either may be empty
  std::string rank;
  std::string target;
  std::string golden;
  std::string failure;  // why it could not be compared; empty otherwise
  Mode mode = Mode::statistics;
  std::uint64_t rows = 0;
  std::uint64_t errors = 0;
  std::uint64_t warnings = 0;
  std::uint64_t unmatched = 0;       // target rows without a partner
  std::uint64_t golden_only = 0;     // reference items without a row
  std::uint64_t unreadable = 0;      // rows whose tensors could not be read or compared
  std::uint64_t unknown = 0;         // rows without a number that both sides recorded, which are no errors
  std::uint64_t measured = 0;        // rows whose tensors were compared
  Coverage coverage;                 // of the tensors of both sides, where the fixed limits judge
  std::string not_judged;            // why the diagnosis could judge nothing; empty: it could
  std::string not_judged_by_limits;  // the same of the fixed limits
  bool mapping_applies = true;       // the mapping file names something of the target
  // --first:
  bool left_out = false;  // nothing was read, as there is certain evidence in an earlier step
  std::uint64_t rows_left_out = 0;
  std::uint64_t entries = 0;  // and, where it stopped:
  std::uint64_t entries_left_out = 0;
  std::string stopped_behind;  // the last entry that was looked at; empty: it did not stop
  std::optional<NotedRow> first_bad;
  std::optional<NotedRow> first_unreadable;
  std::vector<NotedRow> worst;  // worst first, as many as SummaryOptions says
  std::string worst_by;         // the metric that sorts them; empty: the verdict
  bool no_values = false;       // a dump of names, types and shapes (task structure)
  std::string advice;           // where many rows are without partner: why, and what helps
  std::vector<std::string> files;

  std::uint64_t passed() const { return rows - errors - warnings - rows_left_out - unknown; }
};

struct CompareReport {
  std::vector<TaskSummary> tasks;
  std::vector<std::string> one_sided;
  std::string mapping_file;                       // that was asked for; empty: none
  std::vector<std::string> not_multiplied;        // what --config asks for in vain, and why
  std::string html_file;                          // the report on all ranks
  std::uint64_t rows_not_in_html = 0;             // for which it has no room
  bool replaced = false;                          // the one file that was asked for was there before
  std::optional<diagnosis::Diagnosis> diagnosis;  // of tasks that have one
  std::string story;                              // of the entry that was to be explained
  bool pipe_closed = false;                       // the reader of stdout went away
};

class Sink {
 public:
  virtual ~Sink() = default;
  /// Before any work: refuses a plan that it cannot show (UsageError), checks that it can write (IoError).
  virtual void begin(const Plan& /*plan*/) {}
  /// Once for each task that could be compared, from any thread. What it throws makes the task a failed one.
  virtual void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& summary) = 0;
  /// What is kept of a task, if anything, goes to the process that ends the output.
  virtual void pack(std::size_t /*task*/, PacketWriter& /*packet*/) const {}
  virtual void unpack(std::size_t /*task*/, PacketReader& /*packet*/) {}
  /// When all tasks are done, in the order of the sinks.
  virtual void end(CompareReport& /*report*/) {}
};

using Sinks = std::vector<std::unique_ptr<Sink>>;

}  // namespace msprobe::compare
