// SPDX-License-Identifier: Apache-2.0
#include "collector/device/plan.hpp"

#include <algorithm>
#include <bit>

#include "tensor/accumulate.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::gpu {
namespace {

using collector::TensorView;
using collector::VisitOrder;
using tensor::DType;
using tensor::DTypeKind;

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;
constexpr u32 kLeastRows = 8;  // of each chunk but the last

bool is_known(DType dtype) {
  switch (dtype) {
    case DType::hifloat8:
    case DType::complex128:
    case DType::qint8:
    case DType::quint8:
    case DType::qint32:
      return false;
    default:
      return true;
  }
}

/// The bits that change the signs of the parts of elements in 8 bytes.
u64 flip_of(const TensorView& view) {
  const DTypeKind kind = tensor::info(view.dtype).kind;
  const std::size_t bits = 8 * view.element_size();
  u64 element = 0;
  if (kind == DTypeKind::floating) {
    if (view.negative) element = u64{1} << (bits - 1);
  } else if (kind == DTypeKind::complex) {
    if (view.negative) element = u64{1} << (bits / 2 - 1);
    if (view.negative != view.conjugate) element |= u64{1} << (bits - 1);
  }
  u64 flip = 0;
  for (std::size_t at = 0; at < 64; at += bits) flip |= element << at;
  return flip;
}

std::optional<Job> make_job(const TensorView& view, const VisitOrder& walk, std::uint8_t tasks) {
  if (walk.rank > kMostAxes) return std::nullopt;
  const auto size = static_cast<u32>(view.element_size());
  Job job = {};
  job.data = reinterpret_cast<const u8*>(walk.data);
  job.count = 1;
  for (std::size_t axis = 0; axis < walk.rank; ++axis) {
    job.length[axis] = walk.length[axis];
    job.stride[axis] = walk.stride[axis];
    job.count *= static_cast<u64>(walk.length[axis]);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(walk.data);
  if (job.count > kMostElements || address % size != 0) return std::nullopt;
  job.rank = static_cast<u8>(walk.rank);
  job.type = static_cast<u8>(view.dtype);
  job.tasks = tasks;
  const bool dense = walk.rank == 0 || (walk.rank == 1 && walk.stride[0] == 1);
  job.contiguous = dense && address % kGroup == 0 ? 1 : 0;
  const u64 rows = (job.count * size + kRowBytes - 1) / kRowBytes;
  job.chunk_rows = static_cast<u32>(std::max<u64>(kLeastRows, (rows + kMostChunks - 1) / kMostChunks));
  job.chunks = static_cast<u32>((rows + job.chunk_rows - 1) / job.chunk_rows);
  if ((tasks & kCrc) != 0 && job.chunks > 1) {
    const u64 last_rows = rows - u64{job.chunks - 1} * job.chunk_rows;
    job.chunk_power = x_to_bytes(static_cast<i64>(job.chunk_rows) * kRowBytes);
    job.last_power = x_to_bytes(static_cast<i64>(last_rows) * kRowBytes);
  }
  return job;
}

template <typename Work>
void set_extrema(const TensorTally& tally, tensor::Statistics& statistics) {
  const Work max = std::bit_cast<Work>(tally.max);
  const Work min = std::bit_cast<Work>(tally.min);
  statistics.max = static_cast<double>(max);
  statistics.min = static_cast<double>(min);
  statistics.integer_max = static_cast<std::int64_t>(tally.max);
  statistics.integer_min = static_cast<std::int64_t>(tally.min);
}

}  // namespace

std::optional<JobPlan> make_plan(const TensorView& view, std::uint8_t tasks) {
  static_assert(static_cast<int>(DType::float8_e8m0fnu) == kFloat8E8m0fnu &&
                static_cast<int>(DType::int64) == kInt64 && static_cast<int>(DType::boolean) == kBool &&
                static_cast<int>(DType::complex64) == kComplex64);
  if (view.data == nullptr || view.count == 0 || !is_known(view.dtype)) return std::nullopt;
  JobPlan plan;
  const std::uint8_t checksums = tasks & (kCrc | kXor);
  const bool together = view.plain();
  if ((tasks & kStatistics) != 0) {
    const VisitOrder walk = collector::walk_in_memory(view);
    const std::optional<Job> job = make_job(view, walk, together ? tasks : std::uint8_t{kStatistics});
    if (!job) return std::nullopt;
    plan.jobs[plan.count++] = *job;
    plan.repetitions = walk.repetitions;
  }
  if (checksums != 0 && (!together || (tasks & kStatistics) == 0)) {
    std::optional<Job> job = make_job(view, collector::walk_in_order(view), checksums);
    if (!job) return std::nullopt;
    job->flip = flip_of(view);
    plan.jobs[plan.count++] = *job;
  }
  return plan;
}

KernelLaunch empty_launch(TensorTally* rows, TensorTally* partials, u32* done) {
  static const auto constants = [] {
    KernelLaunch made = {};
    made.skip = x_to_bytes(kRowBytes - kGroup);
    u32 level = 0;
    for (u32 half = kLanes / 2; half > 0; half /= 2) made.fold[level++] = x_to_bytes(half * i64{kGroup});
    return made;
  }();
  KernelLaunch launch = constants;
  launch.rows = rows;
  launch.partials = partials;
  launch.done = done;
  return launch;
}

void add_job(KernelLaunch& launch, Job job, u32 row) {
  job.first_chunk = launch.chunks;
  job.row = row;
  launch.chunks += job.chunks;
  launch.tasks |= job.tasks;
  launch.job[launch.jobs++] = job;
}

collector::Measured measured_of(const TensorTally& tally, const Measuring& what) {
  tensor::Statistics statistics;
  statistics.count = what.count / what.repetitions;
  statistics.nan = tally.nan;
  statistics.pos_inf = tally.pos_inf;
  statistics.neg_inf = tally.neg_inf;
  statistics.zero = tally.zero;
  statistics.sum = tensor::canonical(tally.sum);
  statistics.sum_of_squares = tensor::canonical(tally.squares);
  const DTypeKind kind = tensor::info(what.dtype).kind;
  if (what.dtype == DType::float64) {
    set_extrema<double>(tally, statistics);
  } else if (what.dtype == DType::uint64) {
    set_extrema<std::uint64_t>(tally, statistics);
  } else if (kind == DTypeKind::integer || kind == DTypeKind::boolean) {
    set_extrema<std::int64_t>(tally, statistics);
  } else {
    statistics.max = static_cast<double>(std::bit_cast<float>(static_cast<u32>(tally.max)));
    statistics.min = static_cast<double>(std::bit_cast<float>(static_cast<u32>(tally.min)));
  }
  if (kind != DTypeKind::integer && kind != DTypeKind::boolean)
    statistics.integer_max = statistics.integer_min = 0;
  return collector::measured_of(statistics, what.repetitions, what.negative && kind == DTypeKind::floating);
}

std::uint32_t crc32_of(const TensorTally& tally, std::uint64_t bytes) {
  // Removes the zeros that fill up the last row.
  const auto zeros = static_cast<i64>((kRowBytes - bytes % kRowBytes) % kRowBytes);
  const u32 remainder = multiply(tally.crc, x_to_bytes(-zeros));
  return ~(remainder ^ multiply(0xFFFFFFFF, x_to_bytes(static_cast<i64>(bytes))));
}

}  // namespace msprobe::gpu
