// SPDX-License-Identifier: Apache-2.0
// Reads a pickle of protocol 0 to 5 into plain data.
#pragma once

#include <cstdint>

#include "formats/pickle.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

/// Limits for reading one pickle. Its memory is that of an Allowance for `file_size`.
struct PickleLimits {
  std::uint64_t max_bytes = std::uint64_t{256} << 20;
  std::uint64_t max_opcodes = 10'000'000;
  std::uint64_t max_stack = 4'000'000;
  std::uint64_t file_size = 0;  // of the file that the pickle was packed in; 0: it is not packed
};

/// Reads the pickle that starts at `offset`. The function does not look at later bytes; Pickle::end() is the
/// offset where the pickle ends. FormatError naming the source, the position and the reason if it is broken,
/// exceeds a limit, leaves values on the stack, or uses an opcode that data does not need (extension
/// registry, out-of-band buffers).
Pickle load_pickle(const ByteSource& source, std::uint64_t offset = 0, const PickleLimits& limits = {});

}  // namespace msprobe::formats
