// SPDX-License-Identifier: Apache-2.0
// One GPU: the kernel on it, and results there that are fetched all at once.
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

/// A tensor to measure, what of it, and what its results are called.
struct Request {
  collector::TensorView view;
  std::uint8_t tasks = kStatistics;
  std::uint64_t name = 0;
};

/// The kernel's code for a GPU. Of a CUDA device the driver tells the architecture.
std::vector<char> compile_kernel(Maker maker, const std::string& driver, const std::string& compiler,
                                 std::string architecture, int ordinal);

class Gpu {
 public:
  using Take = std::function<void(std::uint64_t name, const collector::DeviceResults&)>;

  /// Loads and tests the kernel; GpuError if anything of it fails, or the GPU computes other numbers than the
  /// host.
  Gpu(Maker maker, const std::string& driver, int ordinal, std::span<const char> code);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  /// Measures tensors on the stream, without waiting for it. All of them are such that make_plan() takes
  /// them. `take` receives earlier results if there is no room for more, which are waited for. GpuError:
  /// nothing more comes of the GPU, and what was not fetched is lost.
  void measure(void* stream, std::span<const Request> requests, const Take& take);
  /// Waits for what was measured, and hands out all results.
  void fetch(const Take& take);

 private:
  struct Pending {
    std::uint64_t name;
    Measuring what;
    std::uint8_t tasks;
    std::uint8_t rows;  // that follow one another: the statistics', the checksum's, or one of both
    std::uint64_t bytes;
  };
  /// What launches work in that do not overlap: those of one stream, until another one takes it over.
  struct Scratch {
    Driver::Address partials = 0;  // in memory_
    Driver::Address done = 0;
    void* stream = nullptr;
    void* event = nullptr;   // behind its last launch
    std::uint64_t used = 0;  // when; 0: never
  };
  class Current;

  Gpu(Maker maker, const std::string& driver, int ordinal);
  Driver::Address allocate(std::size_t bytes);
  Scratch& scratch_for(void* stream);
  Launch launch_in(const Scratch& scratch) const;
  void launch(Scratch& scratch, Launch& launch);
  /// Waits for all launches and nothing else.
  void bring_rows(std::vector<Tally>& tallies);
  void measure_locked(void* stream, std::span<const Request> requests, const Take& take);
  void fetch_locked(const Take& take);
  template <typename Work>
  void unless_broken(Work work);
  void test();
  void test_some(std::span<const collector::TensorView> views, const std::byte* host, Driver::Address device);

  static constexpr std::size_t kRows = 16'384;  // more than a step of a small model has
  static constexpr std::size_t kStreams = 4;    // that do not wait for one another

  Driver driver_;
  std::mutex mutex_;
  void* function_ = nullptr;
  Driver::Address memory_ = 0;  // the rows, and all scratch
  std::array<Scratch, kStreams> scratch_;
  std::uint64_t launches_ = 0;
  void* stream_ = nullptr;        // our own, for copies
  Driver::Address tested_ = 0;    // elements of the test
  std::vector<Pending> pending_;  // in the order of their rows
  std::size_t used_ = 0;          // rows
  bool broken_ = false;
};

}  // namespace msprobe::gpu
