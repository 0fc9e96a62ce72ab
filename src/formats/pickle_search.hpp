// SPDX-License-Identifier: Apache-2.0
// Pickled names among bytes whose opcodes cannot be followed.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/pickle.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

/// The dangerous names from `offset` on that are spelt as GLOBAL, INST or the usual STACK_GLOBAL spell them.
/// A hint for whoever looks at the file, no more: a name may be spelt in other ways, too. Looks at 64 MiB.
std::vector<PickleGlobal> search_dangerous_names(const ByteSource& source, std::uint64_t offset);

}  // namespace msprobe::formats
