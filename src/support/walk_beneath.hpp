// SPDX-License-Identifier: Apache-2.0
// Opening a file below a folder, where the system cannot do it by itself.
#pragma once

#include <string>

namespace msprobe {

/// What openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS gives, for kernels before 5.6 and sandboxes
/// without it: each component is opened by itself, and links are followed as long as they stay below
/// `folder`, an open one. A descriptor, or -1 with errno, EXDEV for a name or a link that leads out.
int walk_beneath(int folder, const std::string& relative, int flags);

}  // namespace msprobe
