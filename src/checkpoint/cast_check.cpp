// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/cast_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "checkpoint/rounding.hpp"

namespace msprobe::checkpoint {

using tensor::DType;

namespace {

// A coarse type rounds every value near 1 to 1, and norms are near 1, so fewer distinct values prove nothing.
constexpr std::size_t kFewestValues = 8;

}  // namespace

CastCheck::CastCheck(DType first, DType second) : first_(first), second_(second) {
  if (tensor::info(first).kind != tensor::DTypeKind::floating ||
      tensor::info(second).kind != tensor::DTypeKind::floating)
    return;
  for (const bool to_second : {true, false}) {
    const DType to = to_second ? second : first;
    const DType from = to_second ? first : second;
    for (const DType between : {DType::bfloat16, DType::float16, DType::float8_e4m3fn, DType::float8_e5m2}) {
      if (between != to && between != from) casts_.push_back({to_second, between, false});
    }
    if (from == DType::float32 && (to == DType::float32 || to == DType::bfloat16))
      casts_.push_back({to_second, DType::bfloat16, true});
  }
}

template <typename T>
bool CastCheck::holds(Cast& cast, std::span<const T> from, std::span<const T> to) const {
  const DType stored = cast.to_second ? second_ : first_;
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto value = static_cast<double>(from[i]);
    if (cast.cuts) {
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(from[i])) & 0xffff0000U);
    } else {
      value = rounded_to(rounded_to(value, cast.between), stored);
    }
    const auto other = static_cast<double>(to[i]);
    if (value != other && !(std::isnan(value) && std::isnan(other))) return false;
    if (cast.values.size() < kFewestValues && std::ranges::find(cast.values, other) == cast.values.end())
      cast.values.push_back(other);
  }
  return true;
}

template <typename T>
void CastCheck::add_pieces(std::span<const T> x, std::span<const T> y) {
  std::erase_if(casts_, [&](Cast& cast) { return cast.to_second ? !holds(cast, x, y) : !holds(cast, y, x); });
}

std::string CastCheck::text() const {
  const auto found =
      std::ranges::find_if(casts_, [](const Cast& each) { return each.values.size() == kFewestValues; });
  if (found == casts_.end()) return {};
  const Cast& cast = *found;
  std::string text = cast.to_second ? "" : "the first is ";
  const auto name = [](DType dtype) { return tensor::info(dtype).name; };
  if (cast.cuts) return text + fmt::format("truncated to {}, not rounded", name(cast.between));
  text += fmt::format("rounded to {}", name(cast.between));
  if (first_ != second_) text += fmt::format(", then to {}", name(cast.to_second ? second_ : first_));
  return text;
}

template void CastCheck::add_pieces(std::span<const float>, std::span<const float>);
template void CastCheck::add_pieces(std::span<const double>, std::span<const double>);

}  // namespace msprobe::checkpoint
