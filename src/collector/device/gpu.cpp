// SPDX-License-Identifier: Apache-2.0
#include "collector/device/gpu.hpp"

#include <algorithm>

#include "collector/kernel_text.hpp"

namespace msprobe::gpu {
namespace {

constexpr u32 kMostBlocks = 1024;

}  // namespace

std::vector<char> compile_kernel(Maker maker, const std::string& driver, const std::string& compiler,
                                 std::string architecture, int ordinal) {
  if (maker == Maker::cuda) architecture = Driver(maker, driver, ordinal).architecture();
  return compile(maker, compiler, kKernelText, architecture);
}

/// The GPU is this thread's while it lives.
class Gpu::Current {
 public:
  explicit Current(const Driver& driver) : driver_(driver), before_(driver.enter()) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() { driver_.leave(before_); }

 private:
  const Driver& driver_;
  int before_;
};

Gpu::Gpu(Maker maker, const std::string& driver, int ordinal) : driver_(maker, driver, ordinal) {}

// What the delegate made is destroyed if the rest fails.
Gpu::Gpu(Maker maker, const std::string& driver, int ordinal, std::span<const char> code)
    : Gpu(maker, driver, ordinal) {
  const Current current(driver_);
  void* module = nullptr;
  check(driver_.load_module(&module, code.data()), "load the kernel");
  check(driver_.get_function(&function_, module, "msprobe_measure"), "find the kernel");
  rows_ = allocate(kRows * sizeof(Tally));
  test();
}

Gpu::~Gpu() {
  try {
    const Current current(driver_);
    driver_.synchronise();
    if (rows_ != 0) driver_.release(rows_);
    if (tested_ != 0) driver_.release(tested_);
    for (const auto& [stream, scratch] : scratch_) driver_.release(scratch.partials);
  } catch (const GpuError&) {  // it is lost, and its memory with it
  }
}

Driver::Address Gpu::allocate(std::size_t bytes) {
  Driver::Address address = 0;
  check(driver_.allocate(&address, bytes), "give memory");
  const bool cleared = driver_.fill(address, 0, bytes) == 0 && driver_.synchronise() == 0;
  if (cleared) return address;
  driver_.release(address);
  throw GpuError("the GPU's driver does not clear memory");
}

Launch Gpu::launch_on(void* stream) {
  auto found = scratch_.find(stream);
  if (found == scratch_.end()) {
    if (scratch_.size() >= kMostStreams) {
      check(driver_.synchronise(), "end its work");
      for (const auto& [old, scratch] : scratch_) driver_.release(scratch.partials);
      scratch_.clear();
    }
    constexpr std::size_t kPartials = sizeof(Tally) * kMostJobs * kMostChunks;
    const Driver::Address partials = allocate(kPartials + sizeof(u32) * kMostJobs);
    found = scratch_.emplace(stream, Scratch{partials, partials + kPartials}).first;
  }
  return empty_launch(pointer<Tally>(rows_), pointer<Tally>(found->second.partials),
                      pointer<u32>(found->second.done));
}

void Gpu::launch(void* stream, Launch& launch) {
  if (launch.jobs == 0) return;
  void* parameters[] = {&launch};
  check(driver_.launch(function_, std::min(launch.chunks, kMostBlocks), 1, 1, kLanes, 1, 1, 0, stream,
                       parameters, nullptr),
        "start the kernel");
}

/// After a failure rows may hold what was there before: nobody may read them.
template <typename Work>
void Gpu::unless_broken(Work work) {
  const std::lock_guard lock(mutex_);
  if (broken_) throw GpuError("the GPU failed before");
  try {
    const Current current(driver_);
    work();
  } catch (...) {
    broken_ = true;
    pending_.clear();
    used_ = 0;
    throw;
  }
}

void Gpu::measure(void* stream, std::span<const Request> requests, const Take& take) {
  unless_broken([&] { measure_locked(stream, requests, take); });
}

void Gpu::fetch(const Take& take) {
  unless_broken([&] {
    if (!pending_.empty()) fetch_locked(take);
  });
}

void Gpu::measure_locked(void* stream, std::span<const Request> requests, const Take& take) {
  Launch some = launch_on(stream);
  for (const Request& request : requests) {
    const std::optional<Plan> plan = make_plan(request.view, request.tasks);
    if (!plan) throw GpuError("a tensor is none that the kernel measures");
    const bool full = used_ + plan->count > kRows;
    if (full || some.jobs + plan->count > kMostJobs) {
      launch(stream, some);
      some = launch_on(stream);
    }
    if (full) fetch_locked(take);
    for (u32 job = 0; job < plan->count; ++job) add_job(some, plan->jobs[job], static_cast<u32>(used_++));
    const collector::TensorView& view = request.view;
    pending_.push_back({request.name,
                        {view.dtype, view.count, plan->repetitions, view.negative},
                        request.tasks,
                        static_cast<std::uint8_t>(plan->count),
                        view.bytes()});
  }
  launch(stream, some);
}

void Gpu::fetch_locked(const Take& take) {
  std::vector<Pending> pending;
  pending.swap(pending_);
  std::vector<Tally> tallies(used_);
  used_ = 0;
  check(driver_.synchronise(), "end its work");  // on all streams
  check(driver_.copy_to_host(tallies.data(), rows_, tallies.size() * sizeof(Tally)), "copy results");
  std::size_t row = 0;
  for (const Pending& one : pending) {
    collector::DeviceResults results;
    if ((one.tasks & kStatistics) != 0) results.measured = measured_of(tallies[row], one.what);
    row += one.rows;
    const Tally& checksums = tallies[row - 1];
    if ((one.tasks & kCrc) != 0) results.checksum = crc32_of(checksums, one.bytes);
    if ((one.tasks & kXor) != 0) results.checksum = checksums.exclusive_or;
    take(one.name, results);
  }
}

}  // namespace msprobe::gpu
