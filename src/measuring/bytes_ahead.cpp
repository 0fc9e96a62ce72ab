// SPDX-License-Identifier: Apache-2.0
#include "measuring/bytes_ahead.hpp"

#include <algorithm>

#include "measuring/measures.hpp"
#include "support/progress.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::measuring {

BytesAhead::BytesAhead(Progress* progress, std::size_t ranks, std::uint64_t json_bytes)
    : progress_(progress), ranks_(ranks), json_bytes_(json_bytes) {
  if (progress_ != nullptr) progress_->begin("comparing", json_bytes, "B");
}

void BytesAhead::add_tensors(std::uint64_t bytes) {
  if (progress_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  ++ranks_read_;
  tensor_bytes_ += bytes;
  // In floating point: a file may claim any size, and the sum is a guess anyway.
  const double all =
      static_cast<double>(tensor_bytes_) * static_cast<double>(ranks_) / static_cast<double>(ranks_read_);
  constexpr double kMost = 1e18;
  progress_->expect(json_bytes_ + static_cast<std::uint64_t>(all < kMost ? all : kMost));
}

void BytesAhead::advance(std::uint64_t bytes) {
  if (progress_ != nullptr) progress_->advance(bytes);
}

std::uint64_t tensor_bytes(std::string_view dtype, std::string_view shape) {
  const auto type = tensor::dtype_from_name(dtype);
  if (!type) return 0;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 42;  // enough for a bar
  const std::uint64_t size = tensor::info(*type).size;
  return std::min(measuring::elements_of(shape), kMost / size) * size;
}

}  // namespace msprobe::measuring
