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

namespace msprobe::device_gpu_test {

using namespace msprobe;
using collector::Measured;
using collector::TensorView;
using msprobe::tensor::DType;

namespace {

std::string fake() {
  const char* path = std::getenv("MSPROBE_FAKE_GPU");
  return path != nullptr ? path : "";
}

struct Counts {
  int launches, fetches, waits, contexts;
};

Counts counts() {
  std::array<int, 4> numbers = {};
  const gpu::Library library(fake());
  void (*tell)(int*) = nullptr;
  library.find(tell, "fake_gpu_counts");
  tell(numbers.data());
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

std::string reason(const std::string& driver, const std::string& compiler, int ordinal = 0) {
  try {
    const gpu::Gpu one(driver, compiler, ordinal);
  } catch (const gpu::GpuError& error) {
    return error.what();
  }
  return "";
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
  gpu::Gpu one(fake(), fake(), 1);
  std::vector<std::vector<float>> tensors;
  for (std::size_t i = 0; i < 100; ++i) tensors.emplace_back(i * 31 + 1, 0.5F + static_cast<float>(i));
  std::map<std::uint64_t, Measured> got;
  const auto take = [&](std::uint64_t name, const Measured& measured) { got[name] = measured; };
  const Counts before = counts();
  for (std::size_t begin = 0; begin < tensors.size(); begin += 50) {
    std::vector<gpu::Request> requests;
    for (std::size_t i = begin; i < begin + 50; ++i) requests.push_back({view_of(tensors[i]), 1000 + i});
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

TEST_CASE("device: a full ring is fetched, and nothing is lost") {
  if (fake().empty()) return;
  gpu::Gpu one(fake(), fake(), 0);
  const std::vector<float> values(3, 2.0F);
  const std::vector<gpu::Request> requests(300, {view_of(values), 5});
  int taken = 0;
  const auto take = [&](std::uint64_t name, const Measured& measured) {
    CHECK(name == 5);
    CHECK(measured.mean == 2);
    ++taken;
  };
  for (int i = 0; i < 20; ++i) one.measure(nullptr, requests, take);
  CHECK(taken == 4096);
  one.fetch(take);
  CHECK(taken == 6000);
}

TEST_CASE("device: whatever is missing or wrong is a reason in one line") {
  if (fake().empty()) return;
  CHECK(reason("libmsprobe_nothing.so.1", fake()) == "libmsprobe_nothing.so.1 cannot be loaded");
  CHECK(reason(fake(), "libmsprobe_nothing.so.1") == "libmsprobe_nothing.so.1 cannot be loaded");
  CHECK(reason("libz.so.1", fake()) == "libz.so.1 has no cuInit");
  CHECK(reason(fake(), fake(), 2) == "the GPU's driver does not find the device (error 101)");
  // The first tensor of a launch is spoilt; the sum of that of the first one is NaN in any case.
  const std::pair<const char*, const char*> faults[] = {
      {"init", "the GPU's driver does not start (error 100)"},
      {"device", "the GPU's driver does not find the device (error 101)"},
      {"compile", "the GPU's compiler does not make code for sm_90: invalid arch"},
      {"load", "the GPU's driver does not load the kernel (error 200)"},
      {"memory", "the GPU's driver does not give memory (error 2)"},
      {"launch", "the GPU's driver does not start the kernel (error 1)"},
      {"sum", "the GPU gives other numbers than the host for uint32"},
      {"crc", "the GPU gives other numbers than the host for float64"},
  };
  for (const auto& [fault, text] : faults) {
    ::setenv("MSPROBE_FAKE_GPU_FAULT", fault, 1);
    CHECK(reason(fake(), fake()) == text);
    ::unsetenv("MSPROBE_FAKE_GPU_FAULT");
    CHECK(counts().contexts == 0);
  }
  CHECK(reason(fake(), fake()) == "");
}

}  // namespace msprobe::device_gpu_test
