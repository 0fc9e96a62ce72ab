// SPDX-License-Identifier: Apache-2.0
// The kernel for GPUs, run by an emulation of blocks and threads. All but the sums must be the host's, bit
// for bit; the sums must be those of a plain loop in the order that the kernel promises.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "collector/checksum.hpp"
#include "collector/device/emulation.hpp"
#include "collector/device/plan.hpp"
#include "collector/measure.hpp"
#include "tensor/convert.hpp"

namespace msprobe::device_kernel_test {

using namespace msprobe;
using collector::Measured;
using collector::TensorView;
using msprobe::tensor::DType;

namespace {

constexpr std::uint8_t kAllTasks = gpu::kStatistics | gpu::kCrc | gpu::kXor;

/// A tensor in aligned memory.
struct Made {
  std::vector<std::max_align_t> memory;
  TensorView view;
};

Made make(DType dtype, const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
          std::size_t offset, const std::vector<std::byte>& bytes) {
  Made made;
  made.memory.resize(bytes.size() / sizeof(std::max_align_t) + 1);
  if (!bytes.empty()) std::memcpy(made.memory.data(), bytes.data(), bytes.size());
  made.view.dtype = dtype;
  made.view.rank = static_cast<std::uint32_t>(shape.size());
  made.view.count = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    made.view.shape[axis] = shape[axis];
    made.view.strides[axis] = strides[axis];
    made.view.count *= static_cast<std::uint64_t>(shape[axis]);
  }
  made.view.data = reinterpret_cast<const std::byte*>(made.memory.data()) + offset * made.view.element_size();
  return made;
}

/// All bit patterns: NaN with payloads, denormal numbers, both infinities.
std::vector<std::byte> any_bits(DType dtype, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count * tensor::info(dtype).size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Numbers that are finite, a few of them zero or denormal.
std::vector<std::byte> finite(DType dtype, std::size_t count, std::uint64_t seed) {
  std::vector<std::byte> bytes = any_bits(dtype, count, seed);
  const tensor::DTypeInfo& type = tensor::info(dtype);
  if (type.kind != tensor::DTypeKind::floating && type.kind != tensor::DTypeKind::complex) return bytes;
  const std::size_t part = type.kind == tensor::DTypeKind::complex ? type.size / 2 : type.size;
  std::mt19937_64 random(seed);
  for (std::size_t at = 0; at < bytes.size(); at += part) {
    std::byte& top = bytes[at + part - 1];
    top &= part == 1 ? std::byte{0x9F} : dtype == DType::float16 ? std::byte{0xBB} : std::byte{0xBF};
    if (part == 8) top &= std::byte{0x9F};
    if (random() % 50 == 0) std::memset(&bytes[at], 0, part);
    if (random() % 50 == 0) std::memset(&bytes[at] + part / 2, 0, part - part / 2);
  }
  return bytes;
}

std::vector<DType> known_types() {
  std::vector<DType> types;
  for (int i = 0; i < tensor::kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::array<std::byte, 16> zero = {};
    if (gpu::make_plan(make(dtype, {1}, {1}, 0, {zero.begin(), zero.end()}).view, gpu::kStatistics))
      types.push_back(dtype);
  }
  return types;
}

/// Memory of a launch, and what a launch leaves in it.
struct Device {
  std::vector<gpu::TensorTally> rows = std::vector<gpu::TensorTally>(2 * gpu::kMostJobs);
  std::vector<gpu::TensorTally> partials = std::vector<gpu::TensorTally>(gpu::kMostJobs * gpu::kMostChunks);
  std::vector<gpu::u32> done = std::vector<gpu::u32>(gpu::kMostJobs);

  gpu::KernelLaunch launch() { return gpu::empty_launch(rows.data(), partials.data(), done.data()); }
};

/// A thread among others.
struct RealPlace {
  gpu::u32 thread;
  gpu::u32 threads;
  gpu::u32 block;
  gpu::u32 blocks;
  std::barrier<>* meeting;
  void barrier() { meeting->arrive_and_wait(); }
  void fence() {}  // add_one() orders all before it
  gpu::u32 add_one(gpu::u32* number) {
    return std::atomic_ref<gpu::u32>(*number).fetch_add(1, std::memory_order_acq_rel);
  }
};

/// Blocks run one after another, the last first if `backwards`; the threads of a block at the same time.
void run(const gpu::KernelLaunch& launch, gpu::u32 blocks, gpu::u32 threads, bool backwards) {
  for (gpu::u32 number = 0; number < blocks; ++number) {
    const gpu::u32 block = backwards ? blocks - 1 - number : number;
    const auto shared = std::make_unique<gpu::Shared>();
    if (threads == 1) {
      gpu::measure(launch, *shared, gpu::SinglePlace{0, 1, block, blocks});
      continue;
    }
    std::barrier<> meeting(threads);
    std::vector<std::thread> running;
    for (gpu::u32 thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        gpu::measure(launch, *shared, RealPlace{thread, threads, block, blocks, &meeting});
      });
    }
    for (std::thread& one : running) one.join();
  }
}

/// All blocks at the same time, as on a GPU.
void run_together(const gpu::KernelLaunch& launch, gpu::u32 blocks, gpu::u32 threads) {
  std::vector<std::unique_ptr<gpu::Shared>> shared;
  std::vector<std::unique_ptr<std::barrier<>>> meetings;
  std::vector<std::thread> running;
  for (gpu::u32 block = 0; block < blocks; ++block) {
    shared.push_back(std::make_unique<gpu::Shared>());
    meetings.push_back(std::make_unique<std::barrier<>>(threads));
  }
  for (gpu::u32 block = 0; block < blocks; ++block) {
    for (gpu::u32 thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, block, thread] {
        gpu::measure(launch, *shared[block],
                     RealPlace{thread, threads, block, blocks, meetings[block].get()});
      });
    }
  }
  for (std::thread& one : running) one.join();
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b)) || (a == 0 && b == 0);
}

struct Found {
  Measured measured;
  std::uint32_t crc = 0;
  std::uint64_t exclusive_or = 0;
};

Found measure_there(const TensorView& view, gpu::u32 blocks = 1, gpu::u32 threads = 1,
                    bool backwards = false) {
  Device device;
  gpu::KernelLaunch launch = device.launch();
  const std::optional<gpu::JobPlan> plan = gpu::make_plan(view, kAllTasks);
  REQUIRE(plan.has_value());
  for (gpu::u32 i = 0; i < plan->count; ++i) gpu::add_job(launch, plan->jobs[i], i);
  run(launch, blocks, threads, backwards);
  const gpu::Measuring what{view.dtype, view.count, plan->repetitions, view.negative};
  const gpu::TensorTally& checksums = device.rows[plan->count - 1];
  for (const gpu::u32 done : device.done) CHECK(done == 0);
  return {gpu::measured_of(device.rows[0], what), gpu::crc32_of(checksums, view.bytes()),
          checksums.exclusive_or};
}

void check(const TensorView& view) {
  CAPTURE(tensor::info(view.dtype).name);
  CAPTURE(view.count);
  const Measured host = collector::measure(view);
  const Found found = measure_there(view);
  const Measured& there = found.measured;
  CHECK(same_bits(there.max, host.max));
  CHECK(same_bits(there.min, host.min));
  CHECK(there.integer_max == host.integer_max);
  CHECK(there.integer_min == host.integer_min);
  CHECK(there.count == host.count);
  CHECK(there.zero == host.zero);
  CHECK(there.nan == host.nan);
  CHECK(there.inf == host.inf);
  CHECK(there.neg_inf == host.neg_inf);
  CHECK(found.crc == collector::crc32_of(view));
  CHECK(found.exclusive_or == collector::xor_of(view));
  // Sums are in another order: at most so far apart (the mean, relative to the root mean square).
  const double scale = host.norm / std::sqrt(static_cast<double>(host.count));
  if (std::isfinite(host.norm)) {
    CHECK(std::fabs(there.mean - host.mean) <= 1e-13 * scale);
    CHECK(std::fabs(there.norm - host.norm) <= 1e-13 * host.norm);
  } else {
    CHECK(same_bits(there.norm, host.norm));
  }
}

/// The sums of float32 elements in the order of kernel.hpp, by plain loops.
std::pair<double, double> promised_sums(const std::vector<float>& values) {
  const std::size_t rows = (values.size() + 1023) / 1024;
  const std::size_t chunk_rows = std::max<std::size_t>(8, (rows + 1023) / 1024);
  const auto tree = [](std::vector<double> lanes) {
    for (std::size_t half = 128; half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    return lanes[0];
  };
  std::array<double, 2> totals = {};
  for (const int power : {1, 2}) {
    std::vector<double> chunks;
    for (std::size_t begin = 0; begin < values.size(); begin += chunk_rows * 1024) {
      std::vector<double> lanes(256);
      const std::size_t end = std::min(values.size(), begin + chunk_rows * 1024);
      for (std::size_t i = begin; i < end; ++i) {
        const double value = values[i];
        lanes[i / 4 % 256] += power == 1 ? value : value * value;
      }
      chunks.push_back(tree(lanes));
    }
    std::vector<double> lanes(256);
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) lanes[chunk % 256] += chunks[chunk];
    totals[static_cast<std::size_t>(power - 1)] = tree(lanes);
  }
  return {totals[0], totals[1]};
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

TEST_CASE("device kernel: results of every type, size and stride are the host's") {
  CHECK(known_types().size() == 20);
  for (const DType dtype : known_types()) {
    for (const std::size_t count : {1U, 2U, 15U, 16U, 17U, 255U, 4096U, 4097U, 40'000U}) {
      const auto n = static_cast<std::int64_t>(count);
      check(make(dtype, {n}, {1}, 0, finite(dtype, count, count)).view);
      check(make(dtype, {n}, {1}, 1, finite(dtype, count + 1, count)).view);
      check(make(dtype, {n}, {-1}, count - 1, finite(dtype, count, count)).view);
      check(make(dtype, {n}, {3}, 1, finite(dtype, 3 * count + 1, count)).view);
      check(make(dtype, {n}, {1}, 0, any_bits(dtype, count, count)).view);
    }
    const auto elements = [&](std::size_t count) { return finite(dtype, count, 7); };
    check(make(dtype, {}, {}, 0, elements(1)).view);
    check(make(dtype, {7, 5}, {1, 7}, 0, elements(35)).view);
    check(make(dtype, {4, 3, 5}, {5, 20, 1}, 0, elements(60)).view);
    check(make(dtype, {4, 3, 40}, {0, 40, 1}, 0, elements(120)).view);
    check(make(dtype, {3, 1, 2}, {0, 17, 0}, 0, elements(1)).view);
    check(make(dtype, {4, 5, 20}, {192, 32, 1}, 0, elements(4 * 192)).view);
    check(make(dtype, {5, 4}, {1, 1}, 0, elements(8)).view);
    check(make(dtype, {3, 4}, {-4, -1}, 11, elements(12)).view);
    check(make(dtype, {2, 3, 2, 3, 2}, {300, 80, 33, 9, 2}, 0, elements(700)).view);
  }
}

TEST_CASE("device kernel: every code of the narrow types is read as on the host") {
  for (const DType dtype : known_types()) {
    const tensor::DTypeInfo& type = tensor::info(dtype);
    if (type.kind != tensor::DTypeKind::floating || type.size > 2) continue;
    for (std::uint32_t code = 0; code < (type.size == 1 ? 256U : 65536U); code += type.size == 1 ? 1 : 7) {
      std::vector<std::byte> bytes(type.size);
      std::memcpy(bytes.data(), &code, type.size);
      const Made one = make(dtype, {}, {}, 0, bytes);
      const Found found = measure_there(one.view);
      const Measured host = collector::measure(one.view);
      REQUIRE(std::bit_cast<std::uint64_t>(found.measured.max) == std::bit_cast<std::uint64_t>(host.max));
      REQUIRE(found.measured.nan == host.nan);
    }
  }
}

TEST_CASE("device kernel: signs of negative and conjugate views") {
  for (const DType dtype : known_types()) {
    for (const bool negative : {false, true}) {
      for (const bool conjugate : {false, true}) {
        Made made = make(dtype, {77}, {1}, 0, finite(dtype, 77, 3));
        made.view.negative = negative;
        made.view.conjugate = conjugate && tensor::info(dtype).kind == tensor::DTypeKind::complex;
        check(made.view);
      }
    }
  }
}

TEST_CASE("device kernel: the order of sums is what it promises, whatever the launch") {
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> values(70'001);
  for (float& value : values) value = normal(random);
  for (const std::size_t size : {1U, 1000U, 8192U, 8193U, 70'001U}) {
    const std::vector<float> part(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(size));
    const Made made = make(DType::float32, {static_cast<std::int64_t>(size)}, {1}, 0, bytes_of(part));
    const auto [sum, squares] = promised_sums(part);
    const Found first = measure_there(made.view);
    CHECK(first.measured.mean == sum / static_cast<double>(size));
    CHECK(first.measured.norm == std::sqrt(squares));
    for (const gpu::u32 blocks : {1U, 2U, 5U, 64U}) {
      for (const bool backwards : {false, true}) {
        const Found again = measure_there(made.view, blocks, 1, backwards);
        CHECK(std::memcmp(&again.measured, &first.measured, sizeof first.measured) == 0);
        CHECK(again.crc == first.crc);
        CHECK(again.exclusive_or == first.exclusive_or);
      }
    }
  }
}

TEST_CASE("device kernel: threads that run at the same time give the same") {
  const Made made = make(DType::bfloat16, {40'003}, {1}, 0, finite(DType::bfloat16, 40'003, 9));
  const Found one = measure_there(made.view);
  for (const gpu::u32 threads : {2U, 3U, 4U}) {
    const Found many = measure_there(made.view, 2, threads);
    CHECK(std::memcmp(&many.measured, &one.measured, sizeof one.measured) == 0);
    CHECK(many.crc == one.crc);
    CHECK(many.exclusive_or == one.exclusive_or);
  }
}

TEST_CASE("device kernel: blocks that run at the same time leave what each alone does") {
  const std::vector<DType> types = {DType::bfloat16, DType::int64, DType::float32};
  std::vector<Made> made;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::size_t count = 30'001 + 7000 * i;
    made.push_back(make(types[i], {static_cast<std::int64_t>(count)}, {1}, 0, finite(types[i], count, i)));
  }
  Device device;
  for (int again = 0; again < 3; ++again) {
    gpu::KernelLaunch launch = device.launch();
    for (gpu::u32 i = 0; i < made.size(); ++i)
      gpu::add_job(launch, gpu::make_plan(made[i].view, kAllTasks)->jobs[0], i);
    CHECK(launch.chunks > 6);
    run_together(launch, 3, 2);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const TensorView& view = made[i].view;
      const Found alone = measure_there(view);
      const Measured measured = gpu::measured_of(device.rows[i], {view.dtype, view.count, 1, false});
      CHECK(std::memcmp(&measured, &alone.measured, sizeof measured) == 0);
      CHECK(gpu::crc32_of(device.rows[i], view.bytes()) == alone.crc);
    }
    for (const gpu::u32 done : device.done) CHECK(done == 0);
  }
}

TEST_CASE("device kernel: several tensors in one launch") {
  Device device;
  gpu::KernelLaunch launch = device.launch();
  std::vector<Made> made;
  const std::vector<DType> types = known_types();
  for (gpu::u32 i = 0; i < gpu::kMostJobs; ++i) {
    const DType dtype = types[i % types.size()];
    const std::size_t count = 1 + i * 1777;
    made.push_back(make(dtype, {static_cast<std::int64_t>(count)}, {1}, 0, finite(dtype, count, i)));
  }
  for (gpu::u32 i = 0; i < gpu::kMostJobs; ++i) {
    const std::uint8_t tasks = i % 3 == 0 ? std::uint8_t{gpu::kStatistics} : kAllTasks;
    gpu::add_job(launch, gpu::make_plan(made[i].view, tasks)->jobs[0], gpu::kMostJobs - i);
  }
  run(launch, 7, 1, true);
  for (gpu::u32 i = 0; i < gpu::kMostJobs; ++i) {
    const TensorView& view = made[i].view;
    const gpu::TensorTally& tally = device.rows[gpu::kMostJobs - i];
    const Measured measured = gpu::measured_of(tally, {view.dtype, view.count, 1, false});
    const Found alone = measure_there(view);
    CHECK(std::memcmp(&measured, &alone.measured, sizeof measured) == 0);
    if (i % 3 != 0) CHECK(gpu::crc32_of(tally, view.bytes()) == alone.crc);
  }
}

TEST_CASE("device kernel: more than 2^31 elements") {
  // One byte that is there 2^16 x 2^16 times; the axes do not merge, and one of them is longer than 1.
  const Made made =
      make(DType::uint8, {3, 65536, 65536}, {1, 0, 0}, 0, {std::byte{1}, std::byte{2}, std::byte{7}});
  const std::optional<gpu::JobPlan> plan = gpu::make_plan(made.view, gpu::kStatistics);
  REQUIRE(plan.has_value());
  CHECK(plan->repetitions == std::uint64_t{1} << 32);
  const Found found = [&] {
    Device device;
    gpu::KernelLaunch launch = device.launch();
    gpu::add_job(launch, plan->jobs[0], 0);
    run(launch, 1, 1, false);
    return Found{gpu::measured_of(device.rows[0], {DType::uint8, made.view.count, plan->repetitions, false})};
  }();
  const Measured host = collector::measure(made.view);
  CHECK(found.measured.count == host.count);
  CHECK(found.measured.mean == host.mean);
  CHECK(found.measured.norm == host.norm);

  // Places behind 2^32 elements, without the time that all of them would take: the last chunk of a checksum
  // alone.
  const gpu::JobPlan all = *gpu::make_plan(made.view, gpu::kCrc);
  CHECK(all.jobs[0].count == 3 * (std::uint64_t{1} << 32));
  const gpu::u64 last = all.jobs[0].count - 3;
  CHECK(gpu::gather(all.jobs[0], 1, last, 3).word[0] == 0x070707);
  CHECK(gpu::gather(all.jobs[0], 1, (gpu::u64{1} << 33) - 2, 4).word[0] == 0x07070202);
  // Lengths whose sum of bits is beyond 2^32 in the power of x, too.
  CHECK(gpu::multiply(gpu::x_to_bytes(gpu::i64{1} << 40), gpu::x_to_bytes(-(gpu::i64{1} << 40))) ==
        gpu::kOne);
  CHECK(gpu::multiply(gpu::x_to_bytes(5), gpu::x_to_bytes(7)) == gpu::x_to_bytes(12));
}

TEST_CASE("device kernel: what it leaves to the host") {
  const std::vector<std::byte> bytes(256);
  CHECK(!gpu::make_plan(make(DType::complex128, {4}, {1}, 0, bytes).view, gpu::kStatistics));
  CHECK(!gpu::make_plan(make(DType::hifloat8, {4}, {1}, 0, bytes).view, gpu::kStatistics));
  CHECK(!gpu::make_plan(make(DType::float32, {0, 4}, {4, 1}, 0, bytes).view, gpu::kStatistics));
  CHECK(!gpu::make_plan(make(DType::int8, {2, 2, 2, 2, 2, 2}, {101, 43, 20, 9, 4, 1}, 0, bytes).view,
                        gpu::kStatistics));
  Made odd = make(DType::float32, {4}, {1}, 0, bytes);
  odd.view.data += 1;
  CHECK(!gpu::make_plan(odd.view, gpu::kStatistics));
}

}  // namespace msprobe::device_kernel_test
