// SPDX-License-Identifier: Apache-2.0
// Makes the elements of a tensor that was not dumped from its recorded range. It uses PyTorch's generator
// (MT19937), bit for bit, so that they are the same on every host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>

#include "tensor/dtype.hpp"

namespace msprobe::precheck {

/// One of the recorded `Max` and `Min`.
struct Bound {
  enum class BoundKind : std::uint8_t { none, integer, real };
  BoundKind kind = BoundKind::none;
  std::int64_t integer = 0;
  double real = 0;

  double number() const { return kind == BoundKind::integer ? static_cast<double>(integer) : real; }
};

struct RandomTensor {
  tensor::DType dtype = tensor::DType::float32;
  std::uint64_t count = 0;
  Bound min;
  Bound max;
  Bound finite_min;  // `Min_except_inf_nan`
  Bound finite_max;
};

/// The next 53 or 24 bits of PyTorch's generator for CPUs.
class RandomStream {
 public:
  explicit RandomStream(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t next32() { return static_cast<std::uint32_t>(engine_()); }
  std::uint64_t next64() {
    const std::uint64_t high = next32();
    return high << 32 | next32();
  }

 private:
  std::mt19937 engine_;
};

/// Hands all elements in order, little-endian, to `take` in pieces. If Max or Min is infinite or undefined,
/// one element is too, at a place that the generator chooses. Complex numbers have parts up to Max.
/// NotRebuilt if the range is not known.
void random_elements(const RandomTensor& tensor, RandomStream& stream,
                     const std::function<void(std::span<const std::byte>)>& take);

}  // namespace msprobe::precheck
