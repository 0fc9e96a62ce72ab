// SPDX-License-Identifier: Apache-2.0
// The user's references for operators of an NPU: a YAML file that names functions of the Python file next to
// it.
#pragma once

#include <string>
#include <vector>

namespace msprobe::precheck {

struct OwnReferences {
  std::string told;                   // JSON for a runner: the Python file and its functions by operator
  std::vector<std::string> warnings;  // entries that have no effect
};

/// Reads a file of references. The functions of `refs.yaml` are in `refs.py`. FormatError naming file and
/// line for an error in it, IoError if one of the two files is missing.
OwnReferences read_references(const std::string& path);

}  // namespace msprobe::precheck
