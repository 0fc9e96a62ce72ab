// SPDX-License-Identifier: Apache-2.0
// A tensor's content as a number: unrecorded views and reshapes keep count, Max, Min and Norm.
#pragma once

#include <cstdint>

#include "dump/side.hpp"

namespace msprobe::measuring {

/// 0: there is nothing to know it by. Constants have no key: zeros are everywhere.
std::uint64_t content_key(const dump::Side& side, const dump::Item& item);

}  // namespace msprobe::measuring
