// SPDX-License-Identifier: Apache-2.0
// Which micro batch of its step an entry of a dump belongs to, as construct.json tells.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::monitor {

inline constexpr std::int64_t kNoMicroStep = -1;

struct EntryPlace {
  std::int64_t micro_step = 0;
  std::int64_t call = 0;  // of this operation or module in the micro step
};

class MicroSteps {
 public:
  virtual ~MicroSteps() = default;
  /// Nothing for an entry that is dropped.
  virtual std::optional<EntryPlace> place(std::string_view entry) const = 0;
  virtual std::int64_t count() const = 0;
};

/// A micro step begins where the first module without a parent is called again; the optimizer belongs to the
/// last one. Where the file numbers them itself, that counts. Backward passes and gradients are where their
/// forward pass is, and have its call.
std::unique_ptr<MicroSteps> read_micro_steps(const ByteSource& construct);

/// As the Python tool does: every module without a parent is a micro step, and the optimizer; backward calls
/// are numbered by themselves; what no module encloses is dropped, but for gradients of parameters, and
/// nothing is where there is no module.
std::unique_ptr<MicroSteps> read_micro_steps_as_python(const ByteSource& construct);

}  // namespace msprobe::monitor
