// SPDX-License-Identifier: Apache-2.0
// One operation of a dump as a folder that needs nothing but PyTorch: its inputs, and a script that calls it
// on a device and judges it by the same call in double precision. Nothing of the dump becomes code: the
// script is always the same, and reads what to call from a file beside it.
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

/// Writes `output`/<API>/. IoError, FormatError, Error: why there is no such case; nothing is left of it
/// then.
WrittenCase write_case(const CaseRequest& request, const std::string& output);

}  // namespace msprobe::precheck
