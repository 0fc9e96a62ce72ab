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

/// The calls that a side has, most likely, only because of its recorder: calls of operations that some
/// recorders leave out, and that the other side has nowhere.
class OneRecorder {
 public:
  /// The tables of construct.json may be null.
  OneRecorder(const dump::Side& side, const dump::Side& other, const dump::ConstructTable* construct,
              const dump::ConstructTable* other_construct);

  bool has(std::uint32_t api) const { return !alone_.empty() && alone_[api]; }
  /// `Torch.ones_like, Tensor.to and 3 more`; empty without such calls.
  std::string names() const;
  std::uint64_t calls() const { return calls_; }
  /// Whether the reason is that the other side has modules alone (level L0).
  bool by_level() const { return by_level_; }
  /// Whether the reason is that the other side records no operations inside some modules, as in compiled
  /// code.
  bool by_compiler() const { return by_compiler_; }
  /// Whether the reason is that the other recording was limited to some calls. Its call numbers then have
  /// gaps.
  bool by_filter() const { return by_filter_; }
  /// Whether the reason may be that the other recorder leaves such operations out. That cannot be if it is
  /// the same recorder and has recorded others of them.
  bool by_recorder() const { return by_recorder_; }

 private:
  bool by_level_;
  bool by_compiler_ = false;
  bool by_filter_;
  bool by_recorder_ = true;
  std::vector<bool> alone_;         // by entry; empty without such calls
  std::vector<std::string> names_;  // in the order of their first calls
  std::uint64_t calls_ = 0;
};

}  // namespace msprobe::diagnosis
