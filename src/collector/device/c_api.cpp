// SPDX-License-Identifier: Apache-2.0
// The C interface of GPUs: checks arguments, and lets no exception out.
#include "msprobe/device.h"

#include <memory>
#include <vector>

#include "collector/c_guard.hpp"
#include "collector/device/gpu.hpp"

struct msprobe_gpu {
  msprobe_gpu(const char* driver, const char* compiler, int ordinal) : device(driver, compiler, ordinal) {}
  msprobe::gpu::Gpu device;
};

namespace msprobe::gpu {
namespace {

Gpu::Take into(msprobe_session* session) {
  return [session](std::uint64_t slot, const collector::Measured& measured) {
    const msprobe_statistics statistics = collector::statistics_of(measured);
    msprobe_fill_statistics(session, slot, &statistics);
  };
}

}  // namespace
}  // namespace msprobe::gpu

using msprobe::collector::guarded;
using msprobe::collector::known_part;
using msprobe::collector::needed;

msprobe_status msprobe_gpu_open(const char* driver, const char* compiler, int ordinal, msprobe_gpu** gpu) {
  return guarded(MSPROBE_FAILED, [&] {
    msprobe_gpu*& to = needed(gpu, "the place for the device");
    to = nullptr;
    to = std::make_unique<msprobe_gpu>(driver != nullptr ? driver : "libcuda.so.1",
                                       &needed(compiler, "the compiler's path"), ordinal)
             .release();
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_gpu_close(msprobe_gpu* gpu) {
  return guarded(MSPROBE_FAILED, [&] {
    delete gpu;
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_gpu_takes(const msprobe_tensor* tensor) {
  return guarded(MSPROBE_FAILED, [&] {
    const auto view = msprobe::collector::view_of(known_part(tensor));
    return msprobe::gpu::make_plan(view, msprobe::gpu::kStatistics) ? MSPROBE_OK : MSPROBE_SKIP;
  });
}

msprobe_status msprobe_gpu_measure(msprobe_gpu* gpu, msprobe_session* session, void* stream,
                                   const msprobe_tensor* tensors, const uint64_t* slots, size_t count) {
  return guarded(MSPROBE_FAILED, [&] {
    msprobe::gpu::Gpu& device = needed(gpu, "the device").device;
    if (count == 0) return MSPROBE_OK;
    needed(tensors, "the list of tensors");
    needed(slots, "the list of slots");
    std::vector<msprobe::gpu::Request> requests(count);
    for (size_t i = 0; i < count; ++i) {
      requests[i].view = msprobe::collector::view_of(known_part(tensors + i));
      requests[i].name = slots[i];
    }
    device.measure(stream, requests, msprobe::gpu::into(session));
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_gpu_drain(msprobe_gpu* gpu, msprobe_session* session) {
  return guarded(MSPROBE_FAILED, [&] {
    needed(gpu, "the device").device.fetch(msprobe::gpu::into(session));
    return MSPROBE_OK;
  });
}
