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
  // B300: 1.2 TFLOPS in double precision at 8 TB/s. The sums would take several times as long as reading the
  // tensors three times.
  if (architecture == "sm_103")
    throw GpuError("this GPU is slow in double precision, in which the kernel computes sums");
  return compile(maker, compiler, kKernelText, architecture);
}

/// Makes the GPU current for this thread as long as the object lives.
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

// The delegating constructor has finished, so the destructor runs if the rest fails.
Gpu::Gpu(Maker maker, const std::string& driver, int ordinal, std::span<const char> code)
    : Gpu(maker, driver, ordinal) {
  const Current current(driver_);
  void* module = nullptr;
  driver_.check(driver_.load_module(&module, code.data()), "load the kernel");
  driver_.check(driver_.get_function(&function_, module, "msprobe_measure"), "find the kernel");
  driver_.check(driver_.make_stream(&stream_, kOnItsOwn), "create a stream");
  // Allocates all memory now: later there may be no memory left, or a graph may be captured, which an
  // allocation would end.
  constexpr std::size_t kRowMemory = kRows * sizeof(TensorTally);
  constexpr std::size_t kPartials = sizeof(TensorTally) * kMostJobs * kMostChunks;
  constexpr std::size_t kScratch = kPartials + sizeof(TensorTally) * kMostJobs;
  static_assert(sizeof(u32) <= sizeof(TensorTally) && alignof(TensorTally) <= 16);
  memory_ = allocate(kRowMemory + kStreams * kScratch);
  for (std::size_t i = 0; i < kStreams; ++i) {
    LaunchMemory& scratch = scratch_[i];
    scratch.partials = memory_ + kRowMemory + i * kScratch;
    scratch.done = scratch.partials + kPartials;
    driver_.check(driver_.make_event(&scratch.event, kNoTiming), "create an event");
  }
  driver_.check(driver_.wait_for_stream(stream_), "synchronize a stream");
  test();
}

Gpu::~Gpu() {
  try {
    const Current current(driver_);
    std::vector<TensorTally> none;
    if (stream_ != nullptr) bring_rows(none);
    if (memory_ != 0) driver_.release(memory_);
    if (tested_ != 0) driver_.release(tested_);
    for (const LaunchMemory& scratch : scratch_) {
      if (scratch.event != nullptr) driver_.end_event(scratch.event);
    }
    if (stream_ != nullptr) driver_.end_stream(stream_);
  } catch (const GpuError&) {  // it is lost, and its memory with it
  }
}

Driver::Address Gpu::allocate(std::size_t bytes) {
  Driver::Address address = 0;
  driver_.check(driver_.allocate(&address, bytes), "allocate memory");
  if (driver_.fill(address, 0, bytes, stream_) == 0) return address;
  driver_.release(address);
  throw GpuError("the GPU's driver cannot clear memory");
}

/// Takes the stream's own scratch, or one whose last launch is over, or else the one that was not used for
/// the longest time. The stream waits for that launch in any case, because another stream may come under the
/// same handle.
Gpu::LaunchMemory& Gpu::scratch_for(void* stream) {
  LaunchMemory* best = nullptr;
  for (LaunchMemory& scratch : scratch_) {
    if (scratch.used != 0 && scratch.stream == stream) best = &scratch;
  }
  for (LaunchMemory& scratch : scratch_) {
    if (best == nullptr && (scratch.used == 0 || driver_.is_over(scratch.event))) best = &scratch;
  }
  if (best == nullptr) best = &*std::ranges::min_element(scratch_, {}, &LaunchMemory::used);
  if (best->used != 0)
    driver_.check(driver_.let_wait(stream, best->event, 0), "make a stream wait for another");
  best->stream = stream;
  return *best;
}

KernelLaunch Gpu::launch_in(const LaunchMemory& scratch) const {
  return empty_launch(pointer<TensorTally>(memory_), pointer<TensorTally>(scratch.partials),
                      pointer<u32>(scratch.done));
}

void Gpu::launch(LaunchMemory& scratch, KernelLaunch& launch) {
  if (launch.jobs == 0) return;
  void* parameters[] = {&launch};
  driver_.check(driver_.launch(function_, std::min(launch.chunks, kMostBlocks), 1, 1, kLanes, 1, 1, 0,
                               scratch.stream, parameters, nullptr),
                "launch the kernel");
  scratch.used = ++launches_;
  driver_.check(driver_.record_event(scratch.event, scratch.stream), "record an event");
}

void Gpu::bring_rows(std::vector<TensorTally>& tallies) {
  for (const LaunchMemory& scratch : scratch_) {
    if (scratch.used != 0)
      driver_.check(driver_.let_wait(stream_, scratch.event, 0), "make a stream wait for another");
  }
  // Waits before the copy, which may hold the driver's own locks as long as it takes.
  driver_.check(driver_.wait_for_stream(stream_), "synchronize a stream");
  if (tallies.empty()) return;
  driver_.check(driver_.copy_to_host(tallies.data(), memory_, tallies.size() * sizeof(TensorTally), stream_),
                "copy results");
  driver_.check(driver_.wait_for_stream(stream_), "synchronize a stream");
}

/// After a failure, rows may hold old contents, so they must not be read.
template <typename Work>
void Gpu::unless_broken(Work work) {
  const std::lock_guard lock(mutex_);
  if (broken_) throw GpuError("the GPU failed in an earlier call");
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

void Gpu::fetch(const Take& take) {
  unless_broken([&] {
    if (!pending_.empty()) fetch_locked(take);
  });
}

void Gpu::measure(void* stream, std::span<const TensorRequest> requests, const Take& take) {
  unless_broken([&] {
    LaunchMemory& scratch = scratch_for(stream);
    KernelLaunch some = launch_in(scratch);
    for (const TensorRequest& request : requests) {
      const std::optional<JobPlan> plan = make_plan(request.view, request.tasks);
      if (!plan) throw GpuError("the kernel cannot measure this tensor");
      const bool full = used_ + plan->count > kRows;
      if (full || some.jobs + plan->count > kMostJobs) {
        launch(scratch, some);
        some = launch_in(scratch);
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
    launch(scratch, some);
  });
}

void Gpu::fetch_locked(const Take& take) {
  std::vector<Pending> pending;
  pending.swap(pending_);
  std::vector<TensorTally> tallies(used_);
  used_ = 0;
  bring_rows(tallies);
  std::size_t row = 0;
  for (const Pending& one : pending) {
    collector::DeviceResults results;
    if ((one.tasks & kStatistics) != 0) results.measured = measured_of(tallies[row], one.what);
    row += one.rows;
    const TensorTally& checksums = tallies[row - 1];
    if ((one.tasks & kCrc) != 0) results.checksum = crc32_of(checksums, one.bytes);
    if ((one.tasks & kXor) != 0) results.checksum = checksums.exclusive_or;
    take(one.name, results);
  }
}

}  // namespace msprobe::gpu
