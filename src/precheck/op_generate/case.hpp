// SPDX-License-Identifier: Apache-2.0
// Writes one operation of a dump as a folder that needs nothing but PyTorch: its inputs, and a script that
// calls it on a device and judges it by the same call in double precision. No part of the dump becomes code:
// the script is always the same, and reads from a file next to it what to call.
#pragma once

#include <cstdint>
#include <string>

#include "precheck/op_generate/config.hpp"

namespace msprobe::precheck {

struct WrittenCase {
  std::string folder;
  std::uint64_t tensors = 0;
  bool backward = false;
  bool synthetic = false;  // some of the tensors are random
};

/// Writes `output`/<API>/. IoError, FormatError or Error say why the case cannot be made; its folder is then
/// removed.
WrittenCase write_case(const CaseRequest& request, const std::string& output);

}  // namespace msprobe::precheck
