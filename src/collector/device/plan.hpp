// SPDX-License-Identifier: Apache-2.0
// From tensors to the kernel's jobs, and from its tallies back to results.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "collector/device/kernel.hpp"
#include "collector/measure.hpp"
#include "collector/tensor_view.hpp"

namespace msprobe::gpu {

constexpr u32 kRowBytes = kLanes * kGroup;

/// The jobs of one tensor. Statistics and checksums of elements that do not lie in row-major order are two:
/// the statistics are of the elements as they lie in memory, repeated ones once, as the host computes them.
struct Plan {
  std::array<Job, 2> jobs;
  std::uint32_t count = 0;
  std::uint64_t repetitions = 1;
};

/// Nothing for what the kernel cannot do: an empty tensor, complex128 and types of other devices, many axes
/// that do not lie behind one another, addresses that are no multiple of the element's size.
std::optional<Plan> make_plan(const collector::TensorView& view, std::uint8_t tasks);

/// A launch without jobs.
Launch empty_launch(Tally* rows, Tally* partials, u32* done);
/// Adds a job whose results go to that row. The launch must have room for it.
void add_job(Launch& launch, Job job, u32 row);

/// What of a tensor is needed to read its results.
struct Measuring {
  tensor::DType dtype = tensor::DType::float32;
  std::uint64_t count = 0;  // of elements
  std::uint64_t repetitions = 1;
  bool negative = false;
};
/// The statistics, as collector::measure() gives them. The sums are in the kernel's order, all else is the
/// same.
collector::Measured measured_of(const Tally& tally, const Measuring& what);
/// The CRC-32 of `bytes` bytes.
std::uint32_t crc32_of(const Tally& tally, std::uint64_t bytes);

}  // namespace msprobe::gpu
