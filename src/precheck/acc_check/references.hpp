// SPDX-License-Identifier: Apache-2.0
// References of the user for operators of an NPU: a YAML file that names functions of the Python file beside
// it.
#pragma once

#include <string>
#include <vector>

namespace msprobe::precheck {

struct OwnReferences {
  std::string told;                   // what a runner takes: the Python file and its functions by operator
  std::vector<std::string> warnings;  // what has no effect
};

/// Of `refs.yaml` the functions are those of `refs.py`. FormatError naming file and line for what is wrong in
/// it, IoError if one of the two is not there.
OwnReferences read_references(const std::string& path);

}  // namespace msprobe::precheck
