// SPDX-License-Identifier: Apache-2.0
// Tests a GPU before it measures anything: 40 tensors, measured by the GPU, by the emulation and by the host.
#include <cmath>
#include <cstring>
#include <random>

#include "collector/checksum.hpp"
#include "collector/device/emulation.hpp"
#include "collector/device/gpu.hpp"
#include "tensor/accumulate.hpp"

namespace msprobe::gpu {
namespace {

using collector::Measured;
using collector::TensorView;
using tensor::DType;

constexpr std::uint8_t kAll = kStatistics | kCrc | kXor;
constexpr std::size_t kRoom = std::size_t{64} << 10;  // bytes of each tensor

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// Compares device and emulation, which must agree in every bit.
bool same(const TensorTally& a, const TensorTally& b) {
  return same(a.sum, b.sum) && same(a.squares, b.squares) && a.max == b.max && a.min == b.min &&
         a.nan == b.nan && a.pos_inf == b.pos_inf && a.neg_inf == b.neg_inf && a.zero == b.zero &&
         a.exclusive_or == b.exclusive_or && a.crc == b.crc;
}

/// Compares device and host, whose sums have another order.
bool same(const Measured& a, const Measured& b) {
  const auto near = [](double x, double y, double scale) {
    return same(x, y) || std::fabs(x - y) <= 1e-12 * scale;
  };
  const double scale = b.norm / std::sqrt(static_cast<double>(b.count));
  return same(a.max, b.max) && same(a.min, b.min) && a.integer_max == b.integer_max &&
         a.integer_min == b.integer_min && a.count == b.count && a.zero == b.zero && a.nan == b.nan &&
         a.inf == b.inf && a.neg_inf == b.neg_inf && near(a.mean, b.mean, scale) &&
         near(a.norm, b.norm, b.norm);
}

/// Every type twice: contiguous elements of any bits, and finite numbers with gaps between them. Each has its
/// room in `memory`, in their order; the views do not point there yet.
std::vector<TensorView> test_views(std::vector<std::byte>& memory) {
  alignas(kGroup) static constexpr std::byte kAnywhere{};
  std::vector<TensorView> views;
  std::mt19937_64 random(20);
  for (int number = 0; number < tensor::kDTypeCount; ++number) {
    for (const bool dense : {true, false}) {
      TensorView view;
      view.dtype = static_cast<DType>(number);
      view.rank = 2;
      const std::int64_t rows = 37 + number;
      view.shape[0] = rows;
      view.shape[1] = 90;
      view.strides[0] = dense ? 90 : 1;
      view.strides[1] = dense ? 1 : rows + 3;
      view.count = static_cast<std::uint64_t>(rows * 90);
      view.data = &kAnywhere;
      if (!make_plan(view, kAll)) continue;
      const std::size_t size = view.element_size();
      const bool complex = tensor::info(view.dtype).kind == tensor::DTypeKind::complex;
      const std::size_t part = complex ? size / 2 : size;
      const std::size_t begin = memory.size();
      memory.resize(begin + kRoom);
      for (std::size_t at = begin; at < memory.size(); ++at) {
        memory[at] = static_cast<std::byte>(random());
        if (!dense && at % part == part - 1) memory[at] &= std::byte{0x9F};
        if (random() % 64 == 0) memory[at - at % part] = std::byte{0};
      }
      views.push_back(view);
    }
  }
  return views;
}

}  // namespace

void Gpu::test() {
  std::vector<std::byte> memory;
  const std::vector<TensorView> views = test_views(memory);
  tested_ = allocate(memory.size());
  driver_.check(driver_.copy_to_device(tested_, memory.data(), memory.size(), stream_),
                "copy data to the device");
  constexpr std::size_t kAtOnce = kMostJobs / 2;
  for (std::size_t at = 0; at < views.size(); at += kAtOnce) {
    test_some(std::span(views).subspan(at, std::min(kAtOnce, views.size() - at)), memory.data() + at * kRoom,
              tested_ + at * kRoom);
  }
  driver_.release(tested_);
  tested_ = 0;
}

void Gpu::test_some(std::span<const TensorView> views, const std::byte* host, Driver::Address device) {
  std::vector<TensorTally> rows(kMostJobs);
  std::vector<TensorTally> partials(std::size_t{kMostJobs} * kMostChunks);
  std::vector<u32> done(kMostJobs);
  KernelLaunch here = empty_launch(rows.data(), partials.data(), done.data());
  LaunchMemory& scratch = scratch_for(stream_);
  KernelLaunch there = launch_in(scratch);
  for (std::size_t i = 0; i < views.size(); ++i) {
    TensorView at = views[i];
    at.data = host + i * kRoom;
    const JobPlan plan = *make_plan(at, kAll);
    at.data = pointer<const std::byte>(device + i * kRoom);
    const JobPlan other = *make_plan(at, kAll);
    for (u32 job = 0; job < plan.count; ++job) {
      add_job(here, plan.jobs[job], here.jobs);
      add_job(there, other.jobs[job], there.jobs);
    }
  }
  emulate(here);
  launch(scratch, there);
  std::vector<TensorTally> got(here.jobs);
  bring_rows(got);
  std::size_t row = 0;
  for (std::size_t k = 0; k < views.size(); ++k) {
    TensorView at = views[k];
    at.data = host + k * kRoom;
    const JobPlan plan = *make_plan(at, kAll);
    const TensorTally& checksums = got[row + plan.count - 1];
    bool good =
        same(measured_of(got[row], {at.dtype, at.count, plan.repetitions, false}), collector::measure(at)) &&
        crc32_of(checksums, at.bytes()) == collector::crc32_of(at) &&
        checksums.exclusive_or == collector::xor_of(at);
    for (u32 i = 0; i < plan.count; ++i) good = good && same(got[row + i], rows[row + i]);
    if (!good)
      throw GpuError("the GPU computes other numbers than the host for " +
                     std::string(tensor::info(at.dtype).name));
    row += plan.count;
  }
}

}  // namespace msprobe::gpu
