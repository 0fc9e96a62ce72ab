// SPDX-License-Identifier: Apache-2.0
// Opens a file below a folder, where the system cannot do this itself.
#pragma once

#include <string>

namespace msprobe {

/// Replaces openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, for kernels before 5.6 and
/// sandboxes without it: opens each component by itself, and follows links as long as they stay below
/// `folder`, which is open. Returns a descriptor, or -1 with errno; EXDEV for a name or a link that leads
/// out.
int walk_beneath(int folder, const std::string& relative, int flags);

}  // namespace msprobe
