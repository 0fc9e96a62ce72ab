// SPDX-License-Identifier: Apache-2.0
// Which micro batch of its step an entry of a dump belongs to, as construct.json tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::monitor {

struct EntryPlace {
  std::int64_t micro_step = 0;
  std::int64_t call = 0;  // of this operation or module in the micro step
};

class MicroSteps {
 public:
  /// A micro step begins where the first module without a parent is called again; the optimizer belongs to
  /// the last one. Where the file numbers them itself, that counts. With `python_rules` every module without
  /// a parent is one, and the optimizer.
  MicroSteps(const ByteSource& construct, bool python_rules);

  /// Backward passes and gradients are where their forward pass is. Nothing for an entry that is dropped
  /// (Python's rules: no module encloses it).
  std::optional<EntryPlace> place(std::string_view entry) const;
  std::int64_t count() const { return count_; }

 private:
  std::unordered_map<std::string, EntryPlace> places_;  // of forward passes
  bool python_rules_;
  std::int64_t count_ = 1;
};

}  // namespace msprobe::monitor
