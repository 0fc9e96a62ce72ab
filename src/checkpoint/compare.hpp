// SPDX-License-Identifier: Apache-2.0
// Compares two checkpoints parameter by parameter, for `ckpt_compare` and for `config_check --compare` with
// folders.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/metrics.hpp"
#include "checkpoint/relation.hpp"
#include "checkpoint/step_check.hpp"
#include "report/table.hpp"
#include "support/coverage.hpp"
#include "support/output_file.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::checkpoint {

struct CheckpointOptions {
  std::string first;
  std::string second;
  std::string output = "./ckpt_similarity.json";  // the Python tool's JSON; "-": standard output
  std::string details;      // a table of everything, csv, xlsx, json or jsonl by its suffix; empty: none
  std::string adapter;      // folder of a LoRA adapter that is added to the first; empty: none
  std::string third;        // a checkpoint whose averages with the first are looked for; empty: none
  std::string name_map;     // file; empty: the built-in one
  double tolerance = 1e-3;  // relative l2 up to which parameters count as close
  Existing existing = Existing::refuse;
  CheckpointLoadOptions load;
};

enum class PairStatus : std::uint8_t {
  equal,        // bit for bit
  same_values,  // but another type, or zeros of other sign
  rounded,      // one side is the other one, rounded to its narrower type
  within_step,  // one side is the other one, quantized or merged: within half a step of the format
  close,
  different,
  shapes_differ,
  copies_differ,  // both sides would match, but copies inside one of them differ
  unreadable,
  only_first,
  only_second,
};
std::string_view status_name(PairStatus status);
bool is_one_sided(PairStatus status);
report::Severity severity_of(PairStatus status);

struct ParameterResult {
  std::string name;
  PairStatus status = PairStatus::equal;
  PairMetrics metrics;  // where the elements were compared
  bool compared = false;
  std::optional<Shape> first_shape;
  std::optional<Shape> second_shape;
  std::string first_dtype;
  std::string second_dtype;
  /// Coordinates of the first unequal element, in the shape that is shown.
  Shape first_place;
  StepCheck steps;
  Relation relation;           // of those that differ
  bool copies_differ = false;  // inside one of the checkpoints
  bool is_nan = false;         // throughout, in both
  std::string step_note;       // which elements of a quantized weight are further than half a step away
  std::string note;            // padding, copies that differ, why it cannot be read
};

std::string all_notes(const ParameterResult& result);

struct CheckpointReport {
  struct ComparedCheckpoint {
    std::string path;
    std::string format;
    std::size_t parameters = 0;
  };
  ComparedCheckpoint first;
  ComparedCheckpoint second;
  std::vector<ParameterResult> results;  // pairs in model order, then those of one side only
  std::vector<std::string> warnings;
  std::vector<std::string> remarks;     // how names were made to match
  std::vector<std::string> not_judged;  // checks that were asked for but not possible, a line each
  std::vector<std::string> files;       // written
  double tolerance = 0;

  std::size_t count(PairStatus status) const;
  /// True if a pair differs by more than the tolerance or cannot be compared, if copies inside a checkpoint
  /// differ, or if one side alone has a parameter that is no computed buffer.
  bool any_different() const;
  bool any_unequal() const;  // any pair or copy that is not the same bit for bit
  bool any_missing() const;  // on either side
  bool any_unreadable() const;
  /// Covers the parameters of both. `by_bits`: parameters that are NaN throughout are the same if their bits
  /// are.
  Coverage coverage(bool by_bits = false) const;
  /// Says why nothing was compared and what may help; empty if the checkpoints share a parameter.
  std::string nothing_in_common() const;
};

/// Compares and writes the results. Checks the outputs before it reads anything. Throws Error if a checkpoint
/// as a whole cannot be read or a result cannot be written.
CheckpointReport compare(const CheckpointOptions& options, Progress* progress);

/// The summary for people, as one text of whole lines: how many parameters are equal and how many close, the
/// worst ten, and what is missing. `color`: with colors for a terminal.
std::string render_summary(const CheckpointReport& report, bool color);

/// The JSON of the Python tool: l2, cos, numel and shape of every parameter that both have.
std::string similarity_json(const CheckpointReport& report);

/// A table of everything that is known about every parameter. The report must outlive the table.
std::unique_ptr<report::Table> details_table(const CheckpointReport& report);

}  // namespace msprobe::checkpoint
