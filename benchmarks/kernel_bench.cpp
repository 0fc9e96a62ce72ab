// SPDX-License-Identifier: Apache-2.0
// Element pairs a second that one core compares, for each instruction set of this machine: from the cache
// (what the kernels can do) and from memory (what they do with large tensors). Processor time, best of
// several runs.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/difference.hpp"

namespace {

using msprobe::tensor::DifferenceAccumulator;
using msprobe::tensor::Isa;

double processor_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

enum class Content { differing, identical, sparse, with_nan };

template <typename T>
void measure(std::string_view what, std::size_t n, Content content) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<T> target(n), golden(n);
  for (std::size_t i = 0; i < n; ++i) {
    golden[i] = static_cast<T>(1000 * normal(random));
    if (content == Content::sparse && i % 2 == 0) golden[i] = 0;
    target[i] = content == Content::identical
                    ? golden[i]
                    : static_cast<T>(golden[i] + static_cast<T>(2 * normal(random)));
    if (content == Content::with_nan && i % 64 == 0) target[i] = std::numeric_limits<T>::quiet_NaN();
  }
  constexpr std::size_t kPairs = 32 << 20;
  for (const Isa isa : msprobe::tensor::available_isas()) {
    double best = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 5; ++run) {
      DifferenceAccumulator accumulator(isa);
      const double start = processor_seconds();
      for (std::size_t done = 0; done < kPairs; done += n) {
        accumulator.add(std::span<const T>(target), std::span<const T>(golden));
      }
      best = std::min(best, processor_seconds() - start);
    }
    fmt::print("{:28} {:8} {:.3f} G pairs/s\n", what, msprobe::tensor::isa_name(isa), kPairs / best * 1e-9);
  }
}

}  // namespace

int main() {
  constexpr std::size_t kCached = 64 << 10;
  measure<float>("float32", kCached, Content::differing);
  measure<float>("float32, identical", kCached, Content::identical);
  measure<float>("float32, half zero", kCached, Content::sparse);
  measure<float>("float32, 1 in 64 NaN", kCached, Content::with_nan);
  measure<float>("float32, from memory", 32 << 20, Content::differing);
  measure<double>("float64", kCached, Content::differing);
  measure<std::int64_t>("int64", kCached, Content::differing);
}
