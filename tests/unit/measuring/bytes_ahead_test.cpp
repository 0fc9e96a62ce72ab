// SPDX-License-Identifier: Apache-2.0
#include "measuring/bytes_ahead.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace msprobe::compare_bytes_ahead_test {

using namespace msprobe::measuring;

TEST_CASE("bytes of a tensor follow from its type and shape in dump.json") {
  CHECK(tensor_bytes("torch.float32", "[2, 3]") == 24);
  CHECK(tensor_bytes("torch.bfloat16", "[1024, 4096]") == 8'388'608);
  CHECK(tensor_bytes("Float32", "[7]") == 28);
  CHECK(tensor_bytes("torch.int64", "[]") == 8);
  CHECK(tensor_bytes("torch.bool", "[3, 0, 5]") == 0);
  CHECK(tensor_bytes("<class 'int'>", "[]") == 0);
  CHECK(tensor_bytes("", "[2]") == 0);
}

TEST_CASE("claims of a file do not overflow") {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 42;
  CHECK(tensor_bytes("torch.float64", "[99999999999999999999999999999999]") <= kLargest);
  CHECK(tensor_bytes("torch.float64", "[4294967296, 4294967296, 4294967296, 4294967296]") <= kLargest);
  CHECK(tensor_bytes("torch.float64", "[4294967296, 4294967296, 0]") <= kLargest);
}

}  // namespace msprobe::compare_bytes_ahead_test
