// SPDX-License-Identifier: Apache-2.0
// The answer of a runner to a call. All of it is checked before it is used.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "precheck/judgement/output.hpp"
#include "precheck/runner/shared_file.hpp"

namespace msprobe::precheck {

/// Why a call gave no outputs.
struct CallError {
  std::string stage;  // "lookup", "reference", "device", "backward"
  std::string kind;   // the exception's type
  std::string text;
  bool ours = false;  // an explanation of op_runner.py
};

struct SideOutputs {
  CallOutput reference;
  CallOutput device;  // nothing if only the reference was asked for
  CallOutput last;    // of a backward of the reference alone: the output of the last of its steps, or nothing
};

/// The outputs point into `bytes`.
struct CallAnswer {
  std::optional<SideOutputs> forward;
  std::optional<SideOutputs> backward;
  std::optional<CallError> error;
  bool leave = false;  // the runner ends itself
  std::vector<std::vector<std::byte>> bytes;
};

/// The contents of the first line.
struct RunnerHello {
  std::string torch;
  std::string device;
  std::string fatal;      // why it cannot work; else empty
  std::string mindspore;  // its version; empty: it is not called
};

/// Reads the first line of a runner. RunnerLost if it is not one.
RunnerHello read_hello(std::string_view line);

/// Reads an answer. RunnerLost if it does not answer the request `id`, and for tensors that are not where
/// they should be.
CallAnswer read_answer(std::string_view line, std::uint64_t id, const SharedFile& outputs);

}  // namespace msprobe::precheck
