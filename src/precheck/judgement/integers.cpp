// SPDX-License-Identifier: Apache-2.0
#include "precheck/judgement/integers.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "support/interrupt.hpp"

namespace msprobe::precheck {
namespace {

using tensor::DType;

/// Any integer of 64 bits, signed or not.
struct WideInteger {
  bool negative = false;
  std::uint64_t bits = 0;  // two's complement

  bool operator==(const WideInteger&) const = default;
  std::int64_t as_signed() const {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return negative ? static_cast<std::int64_t>(bits) : static_cast<std::int64_t>(std::min(bits, kMost));
  }
};

template <typename T>
WideInteger load_integer(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return {value < T{0}, static_cast<std::uint64_t>(value)};
}

using LoadInteger = WideInteger (*)(const std::byte*);

LoadInteger loader_of(DType dtype) {
  switch (dtype) {
    case DType::int64:
      return load_integer<std::int64_t>;
    case DType::int32:
    case DType::qint32:
      return load_integer<std::int32_t>;
    case DType::int16:
      return load_integer<std::int16_t>;
    case DType::int8:
    case DType::qint8:
      return load_integer<std::int8_t>;
    case DType::uint64:
      return load_integer<std::uint64_t>;
    case DType::uint32:
      return load_integer<std::uint32_t>;
    case DType::uint16:
      return load_integer<std::uint16_t>;
    default:
      return load_integer<std::uint8_t>;
  }
}

/// The distance of two integers. It never wraps: the distance of a negative and a large number fits, too.
std::uint64_t distance(const WideInteger& a, const WideInteger& b) {
  const bool a_is_less = a.negative != b.negative ? a.negative : a.bits < b.bits;
  return a_is_less ? b.bits - a.bits : a.bits - b.bits;
}

/// |d - b| as NumPy computes it in the type.
std::int64_t wrapped_distance(DType dtype, const WideInteger& b, const WideInteger& d) {
  const std::uint64_t difference = d.bits - b.bits;
  switch (dtype) {
    case DType::int8:
    case DType::qint8: {
      const auto value = static_cast<std::int8_t>(difference);
      return static_cast<std::int8_t>(value < 0 ? -value : value);
    }
    case DType::int16: {
      const auto value = static_cast<std::int16_t>(difference);
      return static_cast<std::int16_t>(value < 0 ? -value : value);
    }
    case DType::uint8:
    case DType::quint8:
    case DType::boolean:
      return static_cast<std::uint8_t>(difference);
    case DType::uint16:
      return static_cast<std::uint16_t>(difference);
    case DType::uint32:
      return static_cast<std::uint32_t>(difference);
    default: {
      const auto value = static_cast<std::int64_t>(difference);
      return value < 0 ? static_cast<std::int64_t>(-difference) : value;
    }
  }
}

}  // namespace

IntegerFigures integer_figures(const TensorOutput& reference, const TensorOutput& device) {
  constexpr std::uint64_t kBetweenChecks = std::uint64_t{1} << 22;
  IntegerFigures figures;
  figures.count = 1;
  for (const std::uint64_t size : device.shape) figures.count *= size;
  if (figures.count == 0) return figures;
  const bool same_type = reference.dtype == device.dtype;
  if (same_type && std::memcmp(reference.bytes.data(), device.bytes.data(), device.bytes.size()) == 0)
    return figures;
  const LoadInteger load_b = loader_of(reference.dtype);
  const LoadInteger load_d = loader_of(device.dtype);
  const std::size_t size_b = tensor::info(reference.dtype).size;
  const std::size_t size_d = tensor::info(device.dtype).size;
  figures.largest_wrapped = std::numeric_limits<std::int64_t>::min();
  for (std::uint64_t i = 0; i < figures.count; ++i) {
    if (i % kBetweenChecks == 0) check_interrupt();
    WideInteger b = load_b(reference.bytes.data() + i * size_b);
    WideInteger d = load_d(device.bytes.data() + i * size_d);
    if (reference.dtype == DType::boolean) b.bits = b.bits != 0;
    if (device.dtype == DType::boolean) d.bits = d.bits != 0;
    figures.largest_wrapped = std::max(figures.largest_wrapped, wrapped_distance(device.dtype, b, d));
    if (b == d) continue;
    if (figures.unequal++ == 0) {
      figures.first_unequal = i;
      figures.reference_at = b.as_signed();
      figures.device_at = d.as_signed();
    }
    figures.largest = std::max(figures.largest, distance(b, d));
  }
  return figures;
}

}  // namespace msprobe::precheck
