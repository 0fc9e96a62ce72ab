// SPDX-License-Identifier: Apache-2.0
// Operations that one recorder records and another does not, which is no difference of the runs
// (docs/statistics.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnosis/imports.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// `Tensor.to` and others that only make, shape or convert tensors: recorders leave these out below risk
/// level ALL, and releases of the Python tool differ in which they know. `VF.lstm` and its kin, which our
/// collector alone records.
bool is_left_out_by_some(std::string_view operation_with_prefix);

/// Which calls a side holds, most likely, only because of its recorder: of operations that some leave out,
/// and that the other side has nowhere.
class OneRecorder {
 public:
  OneRecorder(const dump::Side& side, const dump::Side& other);

  bool has(std::uint32_t api) const { return !alone_.empty() && alone_[api]; }
  /// `Torch.ones_like, Tensor.to and 3 more`; empty if there are none.
  std::string names() const;
  std::uint64_t calls() const { return calls_; }
  /// Is it because the other side has modules alone (level L0)?
  bool by_level() const { return by_level_; }
  /// Is it because the other recording was asked for some calls alone? Its numbers of calls have gaps then.
  bool by_filter() const { return by_filter_; }
  /// Or may it be because its recorder leaves such operations out? Not if it is the same one and has recorded
  /// others of them.
  bool by_recorder() const { return by_recorder_; }

 private:
  bool by_level_;
  bool by_filter_;
  bool by_recorder_ = true;
  std::vector<bool> alone_;         // by entry; empty if there are none
  std::vector<std::string> names_;  // in the order of their first calls
  std::uint64_t calls_ = 0;
};

}  // namespace msprobe::diagnosis
