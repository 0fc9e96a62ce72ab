// SPDX-License-Identifier: Apache-2.0
// The way to a GPU and back, with a driver and a compiler that are test doubles (doubles/fake_gpu.cpp).
#include "collector/device/gpu.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "collector/checksum.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::device_gpu_test {

using namespace msprobe;
using collector::DeviceResults;
using collector::Measured;
using collector::TensorView;
using msprobe::tensor::DType;

namespace {

std::string fake() {
  const char* path = std::getenv("MSPROBE_FAKE_GPU");
  return path != nullptr ? path : "";
}

struct Counts {
  int launches, fetches, waits, contexts, hip_device, takeovers, hip_error;
};

Counts counts() {
  std::array<int, 7> numbers = {};
  const gpu::Library library(fake());
  void (*tell)(int*) = nullptr;
  library.find(tell, "fake_gpu_counts");
  tell(numbers.data());
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]};
}

struct Libraries {
  gpu::Maker maker;
  std::string driver;
  std::string compiler;
};

Libraries cuda(const std::string& driver = fake(), const std::string& compiler = fake()) {
  return {gpu::Maker::cuda, driver, compiler};
}

Libraries hip() {
  return {gpu::Maker::hip, fake(), fake()};
}

gpu::Gpu open(const Libraries& libraries, int ordinal) {
  const std::vector<char> code =
      gpu::compile_kernel(libraries.maker, libraries.driver, libraries.compiler, "gfx90a:xnack-", ordinal);
  return gpu::Gpu(libraries.maker, libraries.driver, ordinal, code);
}

std::string reason(const Libraries& libraries, int ordinal = 0) {
  return test::message_of<gpu::GpuError>([&] { const gpu::Gpu one = open(libraries, ordinal); }, "");
}

TensorView view_of(const std::vector<float>& values) {
  TensorView view;
  view.data = reinterpret_cast<const std::byte*>(values.data());
  view.rank = 1;
  view.shape[0] = static_cast<std::int64_t>(values.size());
  view.strides[0] = 1;
  view.count = values.size();
  return view;
}

}  // namespace

TEST_CASE("device: results of many tensors come in one fetch") {
  if (fake().empty()) return;
  gpu::Gpu one = open(cuda(), 1);
  std::vector<std::vector<float>> tensors;
  for (std::size_t i = 0; i < 100; ++i) tensors.emplace_back(i * 31 + 1, 0.5F + static_cast<float>(i));
  std::map<std::uint64_t, Measured> got;
  const auto take = [&](std::uint64_t name, const DeviceResults& results) {
    CHECK(!results.checksum);
    got[name] = *results.measured;
  };
  const Counts before = counts();
  for (std::size_t begin = 0; begin < tensors.size(); begin += 50) {
    std::vector<gpu::TensorRequest> requests;
    for (std::size_t i = begin; i < begin + 50; ++i)
      requests.push_back({view_of(tensors[i]), gpu::kStatistics, 1000 + i});
    one.measure(begin == 0 ? nullptr : &got, requests, take);
  }
  CHECK(got.empty());
  CHECK(counts().launches - before.launches == 4);  // of 28 and 22 tensors, twice
  CHECK(counts().fetches == before.fetches);
  one.fetch(take);
  CHECK(counts().fetches - before.fetches == 1);
  CHECK(counts().contexts == 0);
  REQUIRE(got.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Measured host = collector::measure(view_of(tensors[i]));
    const Measured& there = got[1000 + i];
    CHECK(there.count == host.count);
    CHECK(there.max == host.max);
    CHECK(std::fabs(there.mean - host.mean) < 1e-12 * host.mean);
    CHECK(std::fabs(there.norm - host.norm) < 1e-12 * host.norm);
  }
  one.fetch(take);
  CHECK(counts().fetches - before.fetches == 1);
}

TEST_CASE("device: where there is no more room results are fetched, and nothing is lost") {
  if (fake().empty()) return;
  gpu::Gpu one = open(cuda(), 0);
  const std::vector<float> values(3, 2.0F);
  const std::vector<gpu::TensorRequest> requests(7000, {view_of(values), gpu::kStatistics, 5});
  int taken = 0;
  const auto take = [&](std::uint64_t name, const DeviceResults& results) {
    CHECK(name == 5);
    CHECK(results.measured->mean == 2);
    ++taken;
  };
  for (int i = 0; i < 3; ++i) one.measure(nullptr, requests, take);
  CHECK(taken == 16'384);
  one.fetch(take);
  CHECK(taken == 21'000);
}

TEST_CASE("device: whatever is missing or wrong is a reason in one line") {
  if (fake().empty()) return;
  CHECK(reason(cuda("libmsprobe_nothing.so.1")) == "libmsprobe_nothing.so.1 cannot be loaded");
  CHECK(reason(cuda(fake(), "libmsprobe_nothing.so.1")) == "libmsprobe_nothing.so.1 cannot be loaded");
  CHECK(reason(cuda("libz.so.1")) == "libz.so.1 has no cuModuleLoadData");
  CHECK(reason(cuda(), 2) == "the GPU's driver cannot find the device (error 101)");
  CHECK(reason(hip(), 2) == "the GPU's driver cannot find the device (error 101)");
  // The first tensor of a launch is spoilt; the sum of that of the first one is NaN in any case.
  const std::pair<const char*, const char*> faults[] = {
      {"init", "the GPU's driver cannot start (error 100)"},
      {"device", "the GPU's driver cannot find the device (error 101)"},
      {"compile", "the GPU's compiler does not compile for sm_90: invalid arch"},
      {"load", "the GPU's driver cannot load the kernel (error 200)"},
      {"memory", "the GPU's driver cannot allocate memory (error 2)"},
      {"launch", "the GPU's driver cannot launch the kernel (error 1)"},
      {"sum", "the GPU computes other numbers than the host for uint32"},
      {"crc", "the GPU computes other numbers than the host for float64"},
  };
  for (const auto& [fault, text] : faults) {
    ::setenv("MSPROBE_FAKE_GPU_FAULT", fault, 1);
    CHECK(reason(cuda()) == text);
    std::string of_hip = text;
    if (const auto at = of_hip.find("sm_90"); at != std::string::npos) of_hip.replace(at, 5, "gfx90a:xnack-");
    CHECK(reason(hip()) == of_hip);
    ::unsetenv("MSPROBE_FAKE_GPU_FAULT");
    CHECK(counts().contexts == 0);
    CHECK(counts().hip_device == 3);
    CHECK(counts().hip_error == 0);
  }
  CHECK(reason(cuda()) == "");
}

TEST_CASE("device: code for what the compiler does not know yet") {
  if (fake().empty()) return;
  const std::pair<const char*, const char*> pairs[] = {
      {"89", "sm_80"}, {"87", "sm_87"}, {"101", "sm_100"}, {"120", "sm_120"}};
  for (const auto& [capability, code] : pairs) {
    ::setenv("MSPROBE_FAKE_GPU_CAPABILITY", capability, 1);
    ::setenv("MSPROBE_FAKE_GPU_CODE", code, 1);
    CHECK(reason(cuda()) == "");
    ::unsetenv("MSPROBE_FAKE_GPU_CODE");
    CHECK(reason(cuda()) ==
          "the GPU's compiler does not compile for sm_" + std::string(capability) + ": invalid arch");
  }
  ::setenv("MSPROBE_FAKE_GPU_CAPABILITY", "103", 1);
  CHECK(reason(cuda()) == "this GPU is slow in double precision, in which the kernel computes sums");
  ::unsetenv("MSPROBE_FAKE_GPU_CAPABILITY");
}

TEST_CASE("device: more streams than there is room for work one after another") {
  if (fake().empty()) return;
  gpu::Gpu one = open(cuda(), 0);
  const std::vector<float> values(50'000, 0.25F);
  const std::vector<gpu::TensorRequest> request = {{view_of(values), gpu::kStatistics | gpu::kCrc, 5}};
  std::array<char, 6> streams = {};
  int taken = 0;
  const auto take = [&](std::uint64_t, const DeviceResults& results) {
    ++taken;
    CHECK(results.measured->mean == 0.25);
    CHECK(results.checksum == collector::crc32_of(request[0].view));
  };
  const Counts before = counts();
  // The self-test's stream has one of the four areas.
  ::setenv("MSPROBE_FAKE_GPU_FAULT", "busy", 1);
  for (int again = 0; again < 3; ++again) {
    for (std::size_t i = 0; i < 3; ++i) one.measure(&streams[i], request, take);
  }
  CHECK(counts().takeovers == before.takeovers);
  for (char& stream : streams) one.measure(&stream, request, take);
  CHECK(counts().takeovers == before.takeovers + 3);
  ::setenv("MSPROBE_FAKE_GPU_FAULT", "memory", 1);  // nothing more is allocated
  for (char& stream : streams) one.measure(&stream, request, take);
  CHECK(counts().waits == before.waits);
  one.fetch(take);
  CHECK(counts().waits == before.waits + 2);
  CHECK(taken == 21);
  ::unsetenv("MSPROBE_FAKE_GPU_FAULT");
}

TEST_CASE("device: statistics and checksums in one launch, by CUDA and by HIP") {
  if (fake().empty()) return;
  for (const Libraries& libraries : {cuda(), hip()}) {
    gpu::Gpu one = open(libraries, 0);
    std::vector<float> values(999);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    TensorView dense = view_of(values);
    TensorView turned = dense;  // two jobs, if there is a checksum
    turned.rank = 2;
    turned.shape[0] = turned.strides[1] = 37;
    turned.shape[1] = 27;
    turned.strides[0] = 1;
    std::vector<gpu::TensorRequest> requests;
    for (std::uint64_t name = 0; name < 60; ++name) {
      const std::array<std::uint8_t, 4> tasks = {gpu::kStatistics, gpu::kStatistics | gpu::kCrc, gpu::kXor,
                                                 gpu::kCrc};
      requests.push_back({name % 3 == 0 ? turned : dense, tasks[name % 4], name});
    }
    int taken = 0;
    const auto take = [&](std::uint64_t name, const DeviceResults& results) {
      CAPTURE(name);
      const gpu::TensorRequest& request = requests[name];
      ++taken;
      CHECK(results.measured.has_value() == ((request.tasks & gpu::kStatistics) != 0));
      if (results.measured) {
        const Measured host = collector::measure(request.view);
        CHECK(results.measured->max == host.max);
        CHECK(std::fabs(results.measured->norm - host.norm) < 1e-12 * host.norm);
      }
      if ((request.tasks & gpu::kCrc) != 0) CHECK(results.checksum == collector::crc32_of(request.view));
      if ((request.tasks & gpu::kXor) != 0) CHECK(results.checksum == collector::xor_of(request.view));
      if (request.tasks == gpu::kStatistics) CHECK(!results.checksum);
    };
    const Counts before = counts();
    one.measure(nullptr, requests, take);
    // 5 of 60 have two jobs: 65 of at most 28 at once.
    CHECK(counts().launches - before.launches == 3);
    one.fetch(take);
    CHECK(counts().fetches - before.fetches == 1);
    CHECK(taken == 60);
    CHECK(counts().hip_device == 3);
  }
}

}  // namespace msprobe::device_gpu_test
