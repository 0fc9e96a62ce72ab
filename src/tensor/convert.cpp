// SPDX-License-Identifier: Apache-2.0
#include "tensor/convert.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "tensor/isa.hpp"
#include "tensor/kernels.hpp"

namespace msprobe::tensor {
namespace {

enum class Special {
  ieee,              // highest exponent: infinity (mantissa 0) and NaN
  all_ones_is_nan,   // no infinity; NaN is all exponent and mantissa bits set
  minus_zero_is_nan  // no infinity, no minus zero; NaN is the pattern of minus zero
};

struct Float8Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Special special;
};

constexpr float power_of_two(int exponent) {
  float value = 1;
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value /= 2;
  return value;
}

constexpr float decode_float8(unsigned bits, Float8Format format) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const unsigned mantissa_mask = (1u << format.mantissa_bits) - 1;
  const unsigned top_exponent = (1u << format.exponent_bits) - 1;
  const bool negative = (bits & 0x80) != 0;
  const unsigned exponent = (bits & 0x7f) >> format.mantissa_bits;
  const unsigned mantissa = bits & mantissa_mask;
  switch (format.special) {
    case Special::ieee:
      if (exponent == top_exponent) return mantissa != 0 ? kNan : (negative ? -kInfinity : kInfinity);
      break;
    case Special::all_ones_is_nan:
      if (exponent == top_exponent && mantissa == mantissa_mask) return kNan;
      break;
    case Special::minus_zero_is_nan:
      if (bits == 0x80) return kNan;
      break;
  }
  const unsigned hidden = exponent == 0 ? 0 : mantissa_mask + 1;
  const int scale = (exponent == 0 ? 1 : static_cast<int>(exponent)) - format.bias - format.mantissa_bits;
  const float value = static_cast<float>(hidden + mantissa) * power_of_two(scale);
  return negative ? -value : value;
}

using ByteTable = std::array<float, 256>;

constexpr ByteTable make_table(Float8Format format) {
  ByteTable table = {};
  for (unsigned bits = 0; bits < table.size(); ++bits) table[bits] = decode_float8(bits, format);
  return table;
}

// A value is a power of two: 2^(bits - 127); 255 is NaN.
constexpr ByteTable make_e8m0_table() {
  ByteTable table = {};
  for (unsigned bits = 0; bits < 255; ++bits) table[bits] = power_of_two(static_cast<int>(bits) - 127);
  table[255] = std::numeric_limits<float>::quiet_NaN();
  return table;
}

// After the sign, a prefix gives the width of the exponent; a wider exponent leaves fewer bits for the
// fraction. The exponent is a sign and a magnitude whose leading one is not stored.
constexpr float decode_hifloat8(unsigned bits) {
  if (bits == 0x80) return std::numeric_limits<float>::quiet_NaN();
  const unsigned code = bits & 0x7f;
  float value = 0;
  if (code == 0x6f) {
    value = std::numeric_limits<float>::infinity();
  } else if (code < 8) {  // 0000mmm: powers of two below the others, without a hidden one
    value = code == 0 ? 0 : power_of_two(static_cast<int>(code) - 23);
  } else {
    const int width = code < 16 ? 0 : code < 32 ? 1 : code < 64 ? 2 : code < 96 ? 3 : 4;
    const int fraction_bits = width == 4 ? 1 : width == 3 ? 2 : 3;
    const unsigned fraction = code & ((1u << fraction_bits) - 1);
    int exponent = 0;
    if (width > 0) {
      const unsigned field = (code >> fraction_bits) & ((1u << width) - 1);
      const unsigned sign = 1u << (width - 1);
      const auto magnitude = static_cast<int>(sign | (field & (sign - 1)));
      exponent = (field & sign) != 0 ? -magnitude : magnitude;
    }
    value = static_cast<float>((1u << fraction_bits) + fraction) * power_of_two(exponent - fraction_bits);
  }
  return (bits & 0x80) != 0 ? -value : value;
}

constexpr ByteTable make_hifloat8_table() {
  ByteTable table = {};
  for (unsigned bits = 0; bits < table.size(); ++bits) table[bits] = decode_hifloat8(bits);
  return table;
}

constexpr ByteTable kE4m3fn = make_table({4, 3, 7, Special::all_ones_is_nan});
constexpr ByteTable kE5m2 = make_table({5, 2, 15, Special::ieee});
constexpr ByteTable kE4m3fnuz = make_table({4, 3, 8, Special::minus_zero_is_nan});
constexpr ByteTable kE5m2fnuz = make_table({5, 2, 16, Special::minus_zero_is_nan});
constexpr ByteTable kE8m0fnu = make_e8m0_table();
constexpr ByteTable kHifloat8 = make_hifloat8_table();

void check_size(DType dtype, std::span<const std::byte> raw, std::size_t elements) {
  if (raw.size() / info(dtype).size < elements) {
    throw std::logic_error("fewer bytes than elements in a conversion from " + std::string(info(dtype).name));
  }
}

template <typename From, typename To>
void widen(std::span<const std::byte> raw, std::span<To> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    From value;
    std::memcpy(&value, raw.data() + i * sizeof value, sizeof value);
    out[i] = static_cast<To>(value);
  }
}

void look_up(const ByteTable& table, std::span<const std::byte> raw, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = table[std::to_integer<std::size_t>(raw[i])];
}

/// Converts to float and then to double, through a small buffer.
void through_float(DType dtype, std::span<const std::byte> raw, std::span<double> out) {
  std::array<float, 512> buffer;
  const std::size_t size = info(dtype).size;
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t n = std::min(buffer.size(), out.size() - done);
    to_float(dtype, raw.subspan(done * size, n * size), std::span(buffer.data(), n));
    std::copy_n(buffer.begin(), n, out.begin() + static_cast<std::ptrdiff_t>(done));
    done += n;
  }
}

std::size_t component_size(DType dtype) {
  return info(dtype).kind == DTypeKind::complex ? info(dtype).size / 2 : info(dtype).size;
}

template <typename Word>
void swap_words(std::span<std::byte> raw) {
  for (std::size_t at = 0; at + sizeof(Word) <= raw.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, raw.data() + at, sizeof word);
    if constexpr (sizeof(Word) == 2) {
      word = __builtin_bswap16(word);
    } else if constexpr (sizeof(Word) == 4) {
      word = __builtin_bswap32(word);
    } else {
      word = __builtin_bswap64(word);
    }
    std::memcpy(raw.data() + at, &word, sizeof word);
  }
}

std::uint16_t half_bits(double value) {
  constexpr int kDigits = 11;
  constexpr int kLeastExponent = -13;  // of numbers with the full number of digits
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  const auto with_sign = [&](int bits) { return static_cast<std::uint16_t>(sign | bits); };
  if (std::isnan(value)) return with_sign(0x7E00);
  if (std::isinf(value)) return with_sign(0x7C00);
  if (size == 0) return sign;
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent, kLeastExponent);
  // A carry out of the mantissa increments the exponent.
  const auto mantissa = static_cast<int>(std::nearbyint(std::ldexp(size, kDigits - exponent)));
  const int bits = ((exponent - kLeastExponent) << (kDigits - 1)) + mantissa;
  return with_sign(std::min(bits, 0x7C00));
}

}  // namespace

void to_float(DType dtype, std::span<const std::byte> raw, std::span<float> out) {
  check_size(dtype, raw, out.size());
  switch (dtype) {
    case DType::float32:
      if (!out.empty()) std::memcpy(out.data(), raw.data(), out.size_bytes());
      return;
    case DType::float16:
      return kernels_for(best_isa()).half_to_float(raw.data(), out.size(), out.data());
    case DType::bfloat16:
      return kernels_for(best_isa()).bfloat16_to_float(raw.data(), out.size(), out.data());
    case DType::float8_e4m3fn:
      return look_up(kE4m3fn, raw, out);
    case DType::float8_e5m2:
      return look_up(kE5m2, raw, out);
    case DType::float8_e4m3fnuz:
      return look_up(kE4m3fnuz, raw, out);
    case DType::float8_e5m2fnuz:
      return look_up(kE5m2fnuz, raw, out);
    case DType::float8_e8m0fnu:
      return look_up(kE8m0fnu, raw, out);
    case DType::hifloat8:
      return look_up(kHifloat8, raw, out);
    default:
      throw std::logic_error(std::string(info(dtype).name) + " does not widen to float");
  }
}

void to_double(DType dtype, std::span<const std::byte> raw, std::span<double> out) {
  check_size(dtype, raw, info(dtype).kind == DTypeKind::complex ? (out.size() + 1) / 2 : out.size());
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      if (!out.empty()) std::memcpy(out.data(), raw.data(), out.size_bytes());
      return;
    case DType::float32:
    case DType::complex64:
      return widen<float>(raw, out);
    case DType::complex32:
      return through_float(DType::float16, raw, out);
    case DType::float16:
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2fnuz:
    case DType::float8_e8m0fnu:
    case DType::hifloat8:
      return through_float(dtype, raw, out);
    case DType::int64:
      return widen<std::int64_t>(raw, out);
    case DType::int32:
    case DType::qint32:
      return widen<std::int32_t>(raw, out);
    case DType::int16:
      return widen<std::int16_t>(raw, out);
    case DType::int8:
    case DType::qint8:
      return widen<std::int8_t>(raw, out);
    case DType::uint64:
      return widen<std::uint64_t>(raw, out);
    case DType::uint32:
      return widen<std::uint32_t>(raw, out);
    case DType::uint16:
      return widen<std::uint16_t>(raw, out);
    case DType::uint8:
    case DType::quint8:
      return widen<std::uint8_t>(raw, out);
    case DType::boolean:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = raw[i] != std::byte{0} ? 1.0 : 0.0;
      return;
  }
}

void from_double(DType dtype, std::span<const double> values, std::span<std::byte> raw) {
  const auto narrow = [&](auto&& nearest) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto element = nearest(values[i]);
      std::memcpy(raw.data() + i * sizeof element, &element, sizeof element);
    }
  };
  switch (component_size(dtype)) {
    case sizeof(std::uint16_t):
      return narrow(half_bits);
    case sizeof(float):
      return narrow([](double value) { return static_cast<float>(value); });
    default:
      return narrow([](double value) { return value; });
  }
}

void swap_bytes(DType dtype, std::span<std::byte> raw) {
  switch (component_size(dtype)) {
    case 2:
      return swap_words<std::uint16_t>(raw);
    case 4:
      return swap_words<std::uint32_t>(raw);
    case 8:
      return swap_words<std::uint64_t>(raw);
    default:
      return;
  }
}

}  // namespace msprobe::tensor
