// SPDX-License-Identifier: Apache-2.0
#include "collector/device/gpu.hpp"

#include <algorithm>

#include "collector/kernel_text.hpp"

namespace msprobe::gpu {
namespace {

constexpr int kMajor = 75;  // attributes of a device: its compute capability
constexpr int kMinor = 76;
constexpr u32 kMostBlocks = 1024;

}  // namespace

/// The GPU's context is this thread's while it lives.
class Gpu::Current {
 public:
  explicit Current(const Gpu& gpu) : gpu_(gpu) {
    gpu_.check(gpu_.driver_.push_context(gpu_.context_), "make its context current");
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    void* popped = nullptr;
    gpu_.driver_.pop_context(&popped);
  }

 private:
  const Gpu& gpu_;
};

Gpu::Gpu(const std::string& driver) : driver_(driver) {}

// What the delegate made is destroyed if the rest fails.
Gpu::Gpu(const std::string& driver, const std::string& compiler, int ordinal) : Gpu(driver) {
  int device = 0;
  int major = 0;
  int minor = 0;
  check(driver_.init(0), "start");
  check(driver_.device_get(&device, ordinal), "find the device");
  check(driver_.device_attribute(&major, kMajor, device), "tell its architecture");
  check(driver_.device_attribute(&minor, kMinor, device), "tell its architecture");
  const std::vector<char> image =
      compile(compiler, kKernelText, "sm_" + std::to_string(major) + std::to_string(minor));
  // The context that the framework uses; it is kept to the end of the process.
  check(driver_.retain_context(&context_, device), "give its context");
  const Current current(*this);
  void* module = nullptr;
  check(driver_.load_module(&module, image.data()), "load the kernel");
  check(driver_.get_function(&function_, module, "msprobe_measure"), "find the kernel");
  rows_ = allocate(kRows * sizeof(Tally));
  test();
}

Gpu::~Gpu() {
  if (context_ == nullptr || driver_.push_context(context_) != 0) return;
  driver_.synchronise();
  if (rows_ != 0) driver_.release(rows_);
  if (tested_ != 0) driver_.release(tested_);
  for (const auto& [stream, scratch] : scratch_) driver_.release(scratch.partials);
  void* popped = nullptr;
  driver_.pop_context(&popped);
}

void Gpu::check(int status, const char* what) const {
  if (status == 0) return;
  throw GpuError("the GPU's driver does not " + std::string(what) + " (error " + std::to_string(status) +
                 ")");
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
    const Current current(*this);
    work();
  } catch (...) {
    broken_ = true;
    pending_.clear();
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
    const std::optional<Plan> plan = make_plan(request.view, kStatistics);
    if (!plan) throw GpuError("a tensor is none that the kernel measures");
    if (some.jobs == kMostJobs || pending_.size() == kRows) {
      launch(stream, some);
      some = launch_on(stream);
    }
    if (pending_.size() == kRows) fetch_locked(take);
    add_job(some, plan->jobs[0], static_cast<u32>(pending_.size()));
    pending_.push_back(
        {request.name, {request.view.dtype, request.view.count, plan->repetitions, request.view.negative}});
  }
  launch(stream, some);
}

void Gpu::fetch_locked(const Take& take) {
  std::vector<Pending> pending;
  pending.swap(pending_);
  std::vector<Tally> tallies(pending.size());
  check(driver_.synchronise(), "end its work");  // on all streams
  check(driver_.copy_to_host(tallies.data(), rows_, tallies.size() * sizeof(Tally)), "copy results");
  for (std::size_t row = 0; row < pending.size(); ++row)
    take(pending[row].name, measured_of(tallies[row], pending[row].what));
}

}  // namespace msprobe::gpu
