// SPDX-License-Identifier: Apache-2.0
// Pickled names among bytes whose opcodes cannot be followed.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/pickle.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

/// The dangerous names from `offset` on that are spelled as GLOBAL, INST or the usual STACK_GLOBAL spell
/// them. The result is only a hint for people who inspect the file: a pickle can spell a name in other ways,
/// too. Searches 64 MiB.
std::vector<PickleGlobal> search_dangerous_names(const ByteSource& source, std::uint64_t offset);

}  // namespace msprobe::formats
