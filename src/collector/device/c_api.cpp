// SPDX-License-Identifier: Apache-2.0
// The C interface of GPUs. It checks arguments and lets no exception out.
#include "msprobe/device.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collector/c_guard.hpp"
#include "collector/device/gpu.hpp"
#include "collector/session.hpp"
#include "collector/step.hpp"
#include "collector/tensor_record.hpp"

struct msprobe_gpu {
  template <typename... Arguments>
  explicit msprobe_gpu(Arguments&&... arguments) : device(std::forward<Arguments>(arguments)...) {}
  msprobe::gpu::Gpu device;
};

namespace msprobe::gpu {
namespace {

using collector::Recorder;
using collector::SummaryMode;

Gpu::Take into(msprobe_session& session) {
  return [&session](std::uint64_t slot, const collector::DeviceResults& results) {
    session.session.locked([&](Recorder& recorder) { recorder.fill_slot(slot, results); });
  };
}

std::uint8_t tasks_of(SummaryMode summary, bool statistics) {
  u32 tasks = statistics ? u32{kStatistics} : 0;
  if (summary == SummaryMode::md5) tasks |= kCrc;
  if (summary == SummaryMode::xor_) tasks |= kXor;
  return static_cast<std::uint8_t>(tasks);
}

bool is_taken(const collector::RecordRules& rules, collector::TensorView view) {
  collector::crop(view, rules.slice);
  const bool by_xor = rules.summary == SummaryMode::xor_;
  // In this case the Python tool records the number itself.
  if (by_xor && rules.numbers.python_compatible && view.rank == 0) return false;
  return make_plan(view, tasks_of(rules.summary, !by_xor)).has_value();
}

/// Slots that no longer exist are left out.
std::vector<TensorRequest> requests_for(const Recorder& recorder, std::span<const std::uint64_t> slots) {
  std::vector<TensorRequest> requests;
  requests.reserve(slots.size());
  for (const std::uint64_t slot : slots) {
    const collector::Deferred* deferred = recorder.find_slot(slot);
    if (deferred == nullptr || deferred->there.data == nullptr) continue;
    const SummaryMode summary = deferred->checksum ? deferred->rules->summary : SummaryMode::statistics;
    requests.push_back({deferred->there, tasks_of(summary, deferred->numbers != nullptr), slot});
  }
  return requests;
}

}  // namespace
}  // namespace msprobe::gpu

namespace {

struct GpuWay {
  msprobe::gpu::Maker maker;
  std::string driver;
  std::string architecture;
};

GpuWay way_to(const char* driver, const char* architecture) {
  if (architecture == nullptr)
    return {msprobe::gpu::Maker::cuda, driver != nullptr ? driver : "libcuda.so.1", ""};
  return {msprobe::gpu::Maker::hip, driver != nullptr ? driver : "libamdhip64.so", architecture};
}

}  // namespace

using msprobe::collector::guarded;
using msprobe::collector::known_part;
using msprobe::collector::needed;

msprobe_status msprobe_gpu_compile(const char* driver, const char* compiler, const char* architecture,
                                   int ordinal, void (*take)(void* to, const void* code, size_t size),
                                   void* to) {
  return guarded(MSPROBE_FAILED, [&] {
    if (take == nullptr) throw msprobe::collector::InvalidCall("the callback for the code is missing");
    const GpuWay way = way_to(driver, architecture);
    const std::vector<char> code = msprobe::gpu::compile_kernel(
        way.maker, way.driver, &needed(compiler, "the compiler's path"), way.architecture, ordinal);
    take(to, code.data(), code.size());
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_gpu_open(const char* driver, const char* architecture, const void* code, size_t size,
                                int ordinal, msprobe_gpu** gpu) {
  return guarded(MSPROBE_FAILED, [&] {
    msprobe_gpu*& to = needed(gpu, "the output pointer of the device");
    to = nullptr;
    if (code == nullptr) throw msprobe::collector::InvalidCall("the code is missing");
    const GpuWay way = way_to(driver, architecture);
    to = std::make_unique<msprobe_gpu>(way.maker, way.driver, ordinal,
                                       std::span(static_cast<const char*>(code), size))
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

msprobe_status msprobe_gpu_takes(msprobe_session* session, const msprobe_tensor* tensor) {
  return guarded(MSPROBE_FAILED, [&] {
    auto view = msprobe::collector::view_of(known_part(tensor));
    const auto rules =
        needed(session, "the session").session.locked([](msprobe::collector::Recorder& recorder) {
          return recorder.record_rules();
        });
    if (!rules) return MSPROBE_SKIP;
    return msprobe::gpu::is_taken(*rules, view) ? MSPROBE_OK : MSPROBE_SKIP;
  });
}

msprobe_status msprobe_gpu_measure(msprobe_gpu* gpu, msprobe_session* session, void* stream,
                                   const uint64_t* slots, size_t count) {
  return guarded(MSPROBE_FAILED, [&] {
    msprobe::gpu::Gpu& device = needed(gpu, "the device").device;
    msprobe_session& of = needed(session, "the session");
    if (count == 0) return MSPROBE_OK;
    needed(slots, "the list of slots");
    const auto requests = of.session.locked([&](msprobe::collector::Recorder& recorder) {
      return msprobe::gpu::requests_for(recorder, {slots, count});
    });
    device.measure(stream, requests, msprobe::gpu::into(of));
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_gpu_drain(msprobe_gpu* gpu, msprobe_session* session) {
  return guarded(MSPROBE_FAILED, [&] {
    needed(gpu, "the device").device.fetch(msprobe::gpu::into(needed(session, "the session")));
    return MSPROBE_OK;
  });
}
