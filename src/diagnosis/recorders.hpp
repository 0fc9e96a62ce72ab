// SPDX-License-Identifier: Apache-2.0
// Finds operations that one recorder records and another does not, so that they do not count as a difference
// of the runs (docs/statistics.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// Whether some recorders leave an operation out. `Tensor.to` and others only make, shape or convert tensors:
/// recorders leave these out below risk level ALL, and releases of the Python tool differ in the operations
/// that they know. msprobe's collector alone records `VF.lstm` and its kin.
bool is_left_out_by_some(std::string_view operation_with_prefix);

/// ` before its backward` or ` before its optimizer` of a side that has none in a step in which the other has
/// one; else empty. Its run was stopped there, or failed.
std::string_view ends_before(const dump::Side& side, const dump::Side& other);

/// Whether a recording with the header `of` was asked for an entry: its `list` names the entry or a module
/// around it, or it has no `list`. `construct` is of the side that has the entry, and may be null.
bool was_asked_for(const dump::Header& of, std::string_view entry, const dump::ConstructTable* construct);

/// Whether each forward call of a side is also one of the other's, with an output of the same shape, and some
/// between them are missing. A recording that ended early lacks the last ones only.
bool records_part_of(const dump::Side& part, const dump::Side& whole);

/// The calls that a side has, most likely, only because of its recorder: calls of operations that some
/// recorders leave out, and that the other side has nowhere.
class OneRecorder {
 public:
  /// The tables of construct.json may be null.
  OneRecorder(const dump::Side& side, const dump::Side& other, const dump::ConstructTable* construct,
              const dump::ConstructTable* other_construct);

  bool has(std::uint32_t api) const { return !alone_.empty() && alone_[api]; }
  /// Whether the other side records a call as a part of its module.
  bool hides(std::uint32_t api) const { return has(api) && (by_level_ || by_compiler_); }
  /// `Torch.ones_like, Tensor.to and 3 more`; empty without such calls.
  std::string names() const;
  std::uint64_t calls() const { return calls_; }
  /// The largest unit roundoff of their outputs; 0 without such calls.
  double coarsest() const { return coarsest_; }
  /// Whether the reason is that the other side has modules alone (level L0).
  bool by_level() const { return by_level_; }
  /// Whether the reason is that the other side records no operations inside some modules, as in compiled
  /// code.
  bool by_compiler() const { return by_compiler_; }
  /// Whether the reason is that the other recording was limited to some calls.
  bool by_filter() const { return !filter_.empty(); }
  /// Whether that is known from more than gaps in numbers, which may begin later for other reasons.
  bool is_limited() const { return by_filter() && filter_ != kByGaps; }
  /// `the gaps in its numbers show it`: how that is known; empty if it was not limited.
  std::string_view filter() const { return filter_; }
  /// Whether the reason may be that the other recorder leaves such operations out. That cannot be if it is
  /// the same recorder and has recorded others of them.
  bool by_recorder() const { return by_recorder_; }

 private:
  bool by_level_;
  bool by_compiler_ = false;
  static constexpr std::string_view kByGaps = "the gaps in its numbers show it";

  static std::string_view filter_of(const dump::Side& side, const dump::Side& other);

  std::string_view filter_;
  bool by_recorder_ = true;
  std::vector<bool> alone_;         // by entry; empty without such calls
  std::vector<std::string> names_;  // in the order of their first calls
  std::uint64_t calls_ = 0;
  double coarsest_ = 0;
};

}  // namespace msprobe::diagnosis
