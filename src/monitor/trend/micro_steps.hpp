// SPDX-License-Identifier: Apache-2.0
// The micro batch of an entry within its step, by construct.json.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::monitor {

inline constexpr std::int64_t kNoMicroStep = -1;

struct CallPlace {
  std::int64_t micro_step = 0;
  std::int64_t call = 0;  // of this operation or module in the micro step
};

class MicroSteps {
 public:
  virtual ~MicroSteps() = default;
  virtual CallPlace place(std::string_view entry) const = 0;
  virtual std::int64_t count() const = 0;
};

/// A micro step begins where the first module without a parent is called again; the optimizer belongs to the
/// last one. Where the file numbers them itself, that counts. Backward passes and gradients are where their
/// forward pass is, and have its call.
std::unique_ptr<MicroSteps> read_micro_steps(const ByteSource& construct);

}  // namespace msprobe::monitor
