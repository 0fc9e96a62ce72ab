// SPDX-License-Identifier: Apache-2.0
// The micro batch of an entry within its step, by construct.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "support/byte_source.hpp"

namespace msprobe::monitor {

inline constexpr std::int64_t kNoMicroStep = -1;

struct CallPlace {
  std::int64_t micro_step = 0;
  std::int64_t call = 0;  // of this operation or module in the micro step
};

/// A micro step begins where the first module without a parent is called again; the optimizer belongs to the
/// last one. Where the file numbers them itself, that counts. Backward passes and gradients are where their
/// forward pass is, and have its call.
class MicroSteps {
 public:
  explicit MicroSteps(const ByteSource& construct);
  CallPlace place(std::string_view entry) const;
  std::int64_t count() const { return count_; }

 private:
  std::unordered_map<std::string, CallPlace> places_;  // of forward passes
  std::int64_t count_ = 1;
};

}  // namespace msprobe::monitor
