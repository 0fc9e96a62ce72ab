// SPDX-License-Identifier: Apache-2.0
// One kind of output. A comparison gives its rows to every sink that the user asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/rows.hpp"
#include "compare/task.hpp"
#include "diagnosis/conclusion.hpp"
#include "support/packet.hpp"

namespace msprobe::measuring {
class TensorFactors;
}

namespace msprobe::compare {

/// The facts that are kept of a task after its rows were written and freed.
struct TaskSummary {
  std::string label;  // "step0/rank1"; empty for two files
  std::string step;   // the parts of the label; either may be empty
  std::string rank;
  std::string target;
  std::string golden;
  std::string failure;  // why it could not be compared; empty otherwise
  measuring::Mode mode = measuring::Mode::statistics;
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
  std::string not_judged_by_limits;  // the same for the fixed limits
  bool mapping_applies = true;       // the mapping file names something in the target
  // --first:
  bool left_out = false;  // nothing was read, because an earlier step has certain evidence
  std::uint64_t rows_left_out = 0;
  std::uint64_t entries = 0;  // and, where it stopped:
  std::uint64_t entries_left_out = 0;
  std::string stopped_behind;  // the last entry that was examined; empty if it did not stop
  std::optional<NotedRow> first_bad;
  std::optional<NotedRow> first_unreadable;
  std::vector<NotedRow> worst;  // worst first, at most SummaryOptions::top
  std::string worst_by;         // the metric that sorts them; empty: the verdict
  bool no_values = false;       // the dump has only names, types and shapes (task structure)
  std::string advice;           // if many rows have no partner: why, and what helps
  std::vector<std::string> files;

  std::uint64_t passed() const { return rows - errors - warnings - rows_left_out - unknown; }
};

struct CompareReport {
  std::vector<TaskSummary> tasks;
  std::vector<std::string> one_sided;
  std::string mapping_file;                       // that was asked for; may be empty
  std::vector<std::string> not_multiplied;        // factors of --config without effect, and the reasons
  std::string html_file;                          // the report on all ranks
  std::uint64_t rows_not_in_html = 0;             // for which the page has no room
  bool replaced = false;                          // the one file that was asked for was there before
  std::optional<diagnosis::Diagnosis> diagnosis;  // of tasks that have one
  std::string story;                              // of the entry named by --explain
  bool pipe_closed = false;                       // the reader of stdout went away
};

class Sink {
 public:
  virtual ~Sink() = default;
  /// Called before any work: rejects a plan that it cannot show (UsageError) and checks that it can write
  /// (IoError).
  virtual void begin(const TaskPlan& /*plan*/) {}
  /// Called once for each task that could be compared, from any thread. If it throws, the task has failed.
  virtual void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& summary) = 0;
  /// Carries the data that the sink keeps of a task, if any, to the process that ends the output.
  virtual void pack(std::size_t /*task*/, PacketWriter& /*packet*/) const {}
  virtual void unpack(std::size_t /*task*/, PacketReader& /*packet*/) {}
  /// Called when all tasks are done, in the order of the sinks.
  virtual void end(CompareReport& /*report*/) {}
};

/// A sink that keeps a value of each task, which travels as it is.
template <typename Kept>
class KeepingSink : public Sink {
 public:
  void begin(const TaskPlan& plan) override { kept_.resize(plan.tasks.size()); }
  void pack(std::size_t task, PacketWriter& packet) const final { packet(kept_[task]); }
  void unpack(std::size_t task, PacketReader& packet) final { packet(kept_[task]); }

 protected:
  std::vector<Kept> kept_;  // by task
};

using Sinks = std::vector<std::unique_ptr<Sink>>;

/// Reports factors of --config without effect, so that a reader does not take tensors for multiplied that
/// were not. `file` is the file that the factors are from.
std::unique_ptr<Sink> factor_sink(std::shared_ptr<const measuring::TensorFactors> factors,
                                  const std::string& file);

}  // namespace msprobe::compare
