// SPDX-License-Identifier: Apache-2.0
// Dumps that lie on the own disks of several machines (--local).
#pragma once

#include <string>

#include "dump/tree.hpp"

namespace msprobe::dump {

/// What the processes of a job see at a path of the same name, as one tree, the same in all of them: each
/// rank tells who sees it, and with `with_tensors` how much its tensors are. Throws what discover() does if
/// nobody sees a tree, IoError if somebody sees what is none, FormatError if they see different kinds, or
/// different ranks of one name.
Tree discover_everywhere(const std::string& path, RankNames names, bool with_tensors);

}  // namespace msprobe::dump
