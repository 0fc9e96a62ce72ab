// SPDX-License-Identifier: Apache-2.0
// Makes the kernel's jobs from tensors, and results from its tallies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "collector/device/kernel.hpp"
#include "collector/measure.hpp"
#include "collector/tensor_view.hpp"

namespace msprobe::gpu {

constexpr u32 kRowBytes = kLanes * kGroup;

/// The jobs of one tensor. If the elements are not in row-major order, statistics and checksums are two jobs:
/// the statistics read the elements in memory order, repeated ones once, as the host does.
struct JobPlan {
  std::array<Job, 2> jobs;
  std::uint32_t count = 0;
  std::uint64_t repetitions = 1;
};

/// Returns nothing for a tensor that the kernel cannot measure: an empty tensor, complex128 and types of
/// other devices, many axes that cannot be merged, addresses that are not a multiple of the element's size.
std::optional<JobPlan> make_plan(const collector::TensorView& view, std::uint8_t tasks);

/// A launch without jobs.
KernelLaunch empty_launch(TensorTally* rows, TensorTally* partials, u32* done);
/// Adds a job whose results go to that row. The launch must have room for it.
void add_job(KernelLaunch& launch, Job job, u32 row);

/// The properties of a tensor that are needed to read its results.
struct Measuring {
  tensor::DType dtype = tensor::DType::float32;
  std::uint64_t count = 0;  // of elements
  std::uint64_t repetitions = 1;
  bool negative = false;
};
/// The statistics, as collector::measure() gives them. The sums are in the kernel's order; all else is equal.
collector::Measured measured_of(const TensorTally& tally, const Measuring& what);
/// The CRC-32 of `bytes` bytes.
std::uint32_t crc32_of(const TensorTally& tally, std::uint64_t bytes);

}  // namespace msprobe::gpu
