// SPDX-License-Identifier: Apache-2.0
// Checksums by xor of tensors without dimensions: the Python tool writes the number itself, the collector the
// number's bits.
#pragma once

#include "dump/side.hpp"

namespace msprobe::measuring {

/// Brings them into the Python tool's form. Nothing happens to a side whose checksums are not made by xor.
void show_scalar_xors_as_numbers(dump::Side& side);

}  // namespace msprobe::measuring
