// SPDX-License-Identifier: Apache-2.0
// Dumps on the local disks of several machines (--local).
#pragma once

#include <string>

#include "dump/tree.hpp"

namespace msprobe::dump {

/// Joins what the processes of a job see at a path of the same name into one tree, the same in all processes.
/// Each rank has the processes that see it and, with `with_tensors`, the size of its tensors. Throws what
/// discover() throws if no process sees a tree, IoError if a process sees something that is not a tree,
/// FormatError if the processes see different kinds, or different ranks of one name.
Tree discover_everywhere(const std::string& path, RankNames names, bool with_tensors);

}  // namespace msprobe::dump
