// SPDX-License-Identifier: Apache-2.0
// The instruction sets for which the kernels are built, and the choice among them at run time.
#pragma once

#include <string_view>
#include <vector>

namespace msprobe::tensor {

struct Kernels;

/// The implementations of the kernels. `scalar` always exists; the others if processor and system support
/// them.
enum class Isa { scalar, sse2, avx2, avx512, neon };

std::vector<Isa> available_isas();  // on this machine, scalar first, best last
Isa best_isa();
std::string_view isa_name(Isa isa);

/// The kernels of one instruction set; throws std::invalid_argument if this machine lacks it.
const Kernels& kernels_for(Isa isa);

}  // namespace msprobe::tensor
