// SPDX-License-Identifier: Apache-2.0
// Runs the kernel of kernel.hpp on the host: for the self-test of a device and for tests.
#pragma once

#include <memory>

#include "collector/device/kernel.hpp"

namespace msprobe::gpu {

/// A block has this single thread, and blocks run one after another.
struct SinglePlace {
  u32 thread = 0;
  u32 threads = 1;
  u32 block = 0;
  u32 blocks = 1;
  void barrier() {}
  void fence() {}
  u32 add_one(u32* number) { return (*number)++; }
};

/// Gives the same results as a launch.
inline void emulate(const KernelLaunch& launch) {
  const auto shared = std::make_unique<Shared>();
  measure(launch, *shared, SinglePlace{});
}

}  // namespace msprobe::gpu
