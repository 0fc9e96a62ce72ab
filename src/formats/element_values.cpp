// SPDX-License-Identifier: Apache-2.0
#include "formats/element_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "support/interrupt.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"
#include "tensor/float_form.hpp"

namespace msprobe::formats {
namespace {

using tensor::DType;
using tensor::DTypeKind;

// A piece of this size stays in the second-level cache, raw and converted.
constexpr std::size_t kPiece = std::size_t{16} << 10;

/// The precision of a narrow type: it determines the distance between neighbouring numbers.
struct NarrowPrecision {
  int fraction_bits = 0;
  int least_exponent = 0;  // of the smallest normal number
};

/// Nothing for double, for hifloat8 (its precision decreases with the exponent), and for types that are not
/// floating-point.
std::optional<NarrowPrecision> precision_of(DType dtype) {
  dtype = tensor::real_type(dtype);
  if (dtype == DType::float8_e8m0fnu) return NarrowPrecision{0, -127};
  const auto form = tensor::float_form(dtype);
  if (!form || dtype == DType::float64 || dtype == DType::hifloat8) return std::nullopt;
  return NarrowPrecision{form->fraction, form->least};
}

/// Would `candidate` be rounded to `value`? The point exactly between two numbers counts as no.
bool rounds_to(double candidate, double value, const NarrowPrecision& precision) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const int scale = std::max(exponent - 1, precision.least_exponent);
  double reach = std::ldexp(0.5, scale - precision.fraction_bits);
  // Below a power of two the neighbours are half as far apart.
  const bool inwards = std::fabs(candidate) < std::fabs(value);
  if (fraction == 0.5 && inwards && exponent - 1 > precision.least_exponent) reach /= 2;
  return std::fabs(candidate - value) < reach;
}

std::string shortest(double value, const std::optional<NarrowPrecision>& precision) {
  if (!precision || !std::isfinite(value) || value == 0) return python_repr(value);
  constexpr int kMostDigits = 9;
  for (int digits = 1; digits < kMostDigits; ++digits) {
    const double candidate = std::strtod(fmt::format("{:.{}e}", value, digits - 1).c_str(), nullptr);
    if (rounds_to(candidate, value, *precision)) return python_repr(candidate);
  }
  return python_repr(std::strtod(fmt::format("{:.{}e}", value, kMostDigits - 1).c_str(), nullptr));
}

std::string real_text(double value, const std::optional<NarrowPrecision>& precision) {
  std::string text = shortest(value, precision);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string complex_text(double real, double imaginary, const std::optional<NarrowPrecision>& precision) {
  std::string text = "(" + real_text(real, precision);
  const std::string part = real_text(imaginary, precision);
  if (!part.starts_with('-')) text += '+';
  return text + part + "j)";
}

bool is_narrow(DType dtype) {
  return tensor::info(dtype).kind == DTypeKind::floating && dtype != DType::float64;
}

}  // namespace

ValueReader::ValueReader(const StoredTensor& tensor)
    : parts_(tensor::info(tensor.dtype).kind == DTypeKind::complex ? 2 : 1), feed_(tensor) {}

std::span<const double> ValueReader::read(std::size_t count) {
  return feed_.next(
      static_cast<std::size_t>(std::min<std::uint64_t>(count, static_cast<std::uint64_t>(remaining()))));
}

ElementStatistics::ElementStatistics(DType dtype) : dtype_(dtype) {
  const auto precision = precision_of(dtype);
  least_normal_ = precision ? std::ldexp(1.0, precision->least_exponent) : std::numeric_limits<double>::min();
  if (is_narrow(dtype) || tensor::info(dtype).kind == DTypeKind::complex) denormal_ = 0;
}

void ElementStatistics::add(std::span<const std::byte> raw) {
  const std::size_t count = raw.size() / tensor::info(dtype_).size;
  const auto add_integers = [&]<typename T>(T) {
    std::vector<T> values(count);
    if (count != 0) std::memcpy(values.data(), raw.data(), raw.size());
    accumulator_.add(std::span<const T>(values));
  };
  if (dtype_ == DType::int64) return add_integers(std::int64_t{});
  if (dtype_ == DType::uint64) return add_integers(std::uint64_t{});
  if (is_narrow(dtype_)) return add_narrow(raw, count);
  if (tensor::info(dtype_).kind == DTypeKind::complex) return add_complex(raw, count);
  doubles_.resize(count);
  tensor::to_double(dtype_, raw, doubles_);
  accumulator_.add(std::span<const double>(doubles_));
}

/// The kernels count denormals of the type that they compute in, which is float for all narrow types; so this
/// function counts those of the narrow type itself.
void ElementStatistics::add_narrow(std::span<const std::byte> raw, std::size_t count) {
  singles_.resize(count);
  tensor::to_float(dtype_, raw, singles_);
  accumulator_.add(std::span<const float>(singles_));
  if (dtype_ == DType::float8_e8m0fnu) return;
  const auto least_normal = static_cast<float>(least_normal_);
  *denormal_ += static_cast<std::uint64_t>(std::ranges::count_if(singles_, [&](float value) {
    const float magnitude = std::fabs(value);
    return magnitude > 0 && magnitude < least_normal;
  }));
}

void ElementStatistics::add_complex(std::span<const std::byte> raw, std::size_t count) {
  doubles_.resize(2 * count);
  tensor::to_double(dtype_, raw, doubles_);
  const auto is_denormal = [&](double part) { return part != 0 && std::fabs(part) < least_normal_; };
  for (std::size_t i = 0; i < count; ++i) {
    const double real = doubles_[2 * i];
    const double imaginary = doubles_[2 * i + 1];
    doubles_[i] = std::hypot(real, imaginary);
    if (is_denormal(real) || is_denormal(imaginary)) ++*denormal_;
  }
  accumulator_.add(std::span<const double>(doubles_).first(count));
}

tensor::Statistics ElementStatistics::finish() const {
  tensor::Statistics statistics = accumulator_.finish();
  statistics.denormal = denormal_.value_or(statistics.denormal);
  return statistics;
}

tensor::Statistics statistics_of(const StoredTensor& tensor) {
  ElementReader reader(tensor);
  ElementStatistics statistics(tensor.dtype);
  std::vector<std::byte> raw;
  while (reader.remaining() > 0) {
    check_interrupt();
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(reader.remaining(), kPiece));
    raw.resize(count * tensor::info(tensor.dtype).size);
    reader.read(raw);
    statistics.add(raw);
  }
  return statistics.finish();
}

std::optional<IntegerRange> integer_range(DType dtype, const tensor::Statistics& statistics) {
  if (tensor::info(dtype).kind != DTypeKind::integer || statistics.count == 0) return {};
  if (dtype == DType::uint64) {
    return IntegerRange{std::to_string(static_cast<std::uint64_t>(statistics.integer_min)),
                        std::to_string(static_cast<std::uint64_t>(statistics.integer_max))};
  }
  if (dtype == DType::int64) {
    return IntegerRange{std::to_string(statistics.integer_min), std::to_string(statistics.integer_max)};
  }
  // A double represents every number of a narrower type exactly.
  return IntegerRange{fmt::format("{:.0f}", statistics.min), fmt::format("{:.0f}", statistics.max)};
}

std::vector<std::string> first_elements(const StoredTensor& tensor, std::size_t count) {
  const tensor::DTypeInfo& type = tensor::info(tensor.dtype);
  const std::optional<NarrowPrecision> precision = precision_of(tensor.dtype);
  ElementReader reader(tensor);
  std::vector<std::string> texts;
  std::vector<std::byte> raw(type.size);
  std::array<double, 2> value{};
  const std::span<double> parts = std::span(value).first(type.kind == DTypeKind::complex ? 2 : 1);
  while (texts.size() < count && reader.remaining() > 0) {
    reader.read(raw);
    if (tensor.dtype == DType::int64 || tensor.dtype == DType::uint64) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, raw.data(), sizeof bits);
      texts.push_back(tensor.dtype == DType::uint64 ? std::to_string(bits)
                                                    : std::to_string(static_cast<std::int64_t>(bits)));
      continue;
    }
    tensor::to_double(tensor.dtype, raw, parts);
    switch (type.kind) {
      case DTypeKind::boolean:
        texts.emplace_back(value[0] != 0 ? "True" : "False");
        break;
      case DTypeKind::integer:
        texts.push_back(std::to_string(static_cast<std::int64_t>(value[0])));
        break;
      case DTypeKind::floating:
        texts.push_back(shortest(value[0], precision));
        break;
      case DTypeKind::complex:
        texts.push_back(complex_text(value[0], value[1], precision));
        break;
    }
  }
  return texts;
}

std::string number_text(double value, tensor::DType dtype) {
  const std::optional<NarrowPrecision> precision = precision_of(dtype);
  if (!precision || !std::isfinite(value) || value == 0) return python_repr(value);
  int exponent = 0;
  std::frexp(value, &exponent);
  const int last_bit = std::max(exponent - 1, precision->least_exponent) - precision->fraction_bits;
  return shortest(std::ldexp(std::nearbyint(std::ldexp(value, -last_bit)), last_bit), precision);
}

std::string float_text(float value) {
  return shortest(static_cast<double>(value), precision_of(DType::float32));
}

}  // namespace msprobe::formats
