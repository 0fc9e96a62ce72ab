// SPDX-License-Identifier: Apache-2.0
// One GPU: the kernel on it, and results in its memory that are fetched together.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "collector/device/libraries.hpp"
#include "collector/device/plan.hpp"

namespace msprobe::gpu {

/// A tensor to measure, the requested tasks, and the number of its results.
struct TensorRequest {
  collector::TensorView view;
  std::uint8_t tasks = kStatistics;
  std::uint64_t name = 0;
};

/// Compiles the kernel for a GPU. The driver of a CUDA device reports the architecture.
std::vector<char> compile_kernel(Maker maker, const std::string& driver, const std::string& compiler,
                                 std::string architecture, int ordinal);

class Gpu {
 public:
  using Take = std::function<void(std::uint64_t name, const collector::DeviceResults&)>;

  /// Loads and tests the kernel. Throws GpuError if any of this fails, or if the GPU computes other numbers
  /// than the host.
  Gpu(Maker maker, const std::string& driver, int ordinal, std::span<const char> code);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  /// Measures tensors on the stream, without waiting for it. make_plan() must accept all of them. If there is
  /// no room for more results, waits for earlier ones and passes them to `take`. Throws GpuError: then the
  /// GPU gives no more results, and those that were not fetched are lost.
  void measure(void* stream, std::span<const TensorRequest> requests, const Take& take);
  /// Waits for the measurements, and hands out all results.
  void fetch(const Take& take);

 private:
  struct Pending {
    std::uint64_t name;
    Measuring what;
    std::uint8_t tasks;
    std::uint8_t rows;  // consecutive ones: the statistics', the checksum's, or one of both
    std::uint64_t bytes;
  };
  /// Scratch memory for launches that do not overlap: those of one stream, until another one takes it over.
  struct LaunchMemory {
    Driver::Address partials = 0;  // in memory_
    Driver::Address done = 0;
    void* stream = nullptr;
    void* event = nullptr;   // recorded after its last launch
    std::uint64_t used = 0;  // the number of its last launch; 0: never used
  };
  class Current;

  Gpu(Maker maker, const std::string& driver, int ordinal);
  Driver::Address allocate(std::size_t bytes);
  LaunchMemory& scratch_for(void* stream);
  KernelLaunch launch_in(const LaunchMemory& scratch) const;
  void launch(LaunchMemory& scratch, KernelLaunch& launch);
  /// Waits for all launches but for nothing else.
  void bring_rows(std::vector<TensorTally>& tallies);
  void fetch_locked(const Take& take);
  template <typename Work>
  void unless_broken(Work work);
  void test();
  void test_some(std::span<const collector::TensorView> views, const std::byte* host, Driver::Address device);

  static constexpr std::size_t kRows = 16'384;  // more than a step of a small model needs
  static constexpr std::size_t kStreams = 4;    // streams that do not wait for one another

  Driver driver_;
  std::mutex mutex_;
  void* function_ = nullptr;
  Driver::Address memory_ = 0;  // the rows, and all scratch
  std::array<LaunchMemory, kStreams> scratch_;
  std::uint64_t launches_ = 0;
  void* stream_ = nullptr;        // our own, for copies
  Driver::Address tested_ = 0;    // elements of the test
  std::vector<Pending> pending_;  // in the order of their rows
  std::size_t used_ = 0;          // rows in use
  bool broken_ = false;
};

}  // namespace msprobe::gpu
