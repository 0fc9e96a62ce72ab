// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/random_elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "precheck/calls/element_bits.hpp"
#include "precheck/calls/not_rebuilt.hpp"

namespace msprobe::precheck {
namespace {

using tensor::DType;
using tensor::DTypeKind;

constexpr std::size_t kDrawnPiece = std::size_t{1} << 16;  // elements

/// A source of numbers of a floating-point type, which are computed in that type.
class FloatSource {
 public:
  FloatSource(DType dtype, double low, double high)
      : dtype_(dtype), form_(*tensor::float_form(dtype)), low_(low), range_(high - low) {}

  double next(RandomStream& stream) {
    if (dtype_ == DType::float64)
      return static_cast<double>(stream.next64() & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53 * range_ + low_;
    const auto drawn = static_cast<float>(stream.next32() & 0xffffff) * 0x1p-24F;
    const double unit = round(drawn);
    const double scaled = round(static_cast<float>(unit) * static_cast<float>(range_));
    return round(static_cast<float>(scaled) + static_cast<float>(low_));
  }
  /// Rounds a number to the type.
  double round(double value) const {
    if (dtype_ == DType::float64) return value;
    return dtype_ == DType::float32 ? static_cast<float>(value) : nearest_element(form_, value);
  }

 private:
  DType dtype_;
  tensor::FloatForm form_;
  double low_;
  double range_;
};

/// Collects elements and hands them on in pieces.
class Pieces {
 public:
  Pieces(std::size_t width, const std::function<void(std::span<const std::byte>)>& take)
      : width_(width), take_(take) {
    bytes_.reserve(kDrawnPiece * width);
  }
  void add(std::uint64_t bits) {
    static_assert(std::endian::native == std::endian::little);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + width_);
    std::memcpy(bytes_.data() + at, &bits, width_);
    if (bytes_.size() >= kDrawnPiece * width_) flush();
  }
  void flush() {
    if (!bytes_.empty()) take_(bytes_);
    bytes_.clear();
  }

 private:
  std::size_t width_;
  const std::function<void(std::span<const std::byte>)>& take_;
  std::vector<std::byte> bytes_;
};

using Places = std::map<std::uint64_t, double>;  // elements whose value is given separately

/// A finite range, and elements beyond it.
struct FilledRange {
  double low = 0;
  double high = 0;
  Places places;
};

/// Sets one element for each recorded value that is not finite; the others get a finite range.
FilledRange mended_range(const RandomTensor& tensor, RandomStream& stream) {
  const double min = tensor.min.number();
  const double max = tensor.max.number();
  FilledRange range{min, max, {}};
  const double told_low = tensor.finite_min.kind == Bound::BoundKind::none ? min : tensor.finite_min.number();
  const double told_high =
      tensor.finite_max.kind == Bound::BoundKind::none ? max : tensor.finite_max.number();
  range.low = told_low;
  range.high = told_high;
  if (!std::isfinite(told_low) && !std::isfinite(told_high)) {
    range.low = -1;
    range.high = 1;
  } else if (!std::isfinite(told_high)) {
    range.high = told_low + 2 * std::max(1.0, std::fabs(told_low));
  } else if (!std::isfinite(told_low)) {
    range.low = told_high - 2 * std::max(1.0, std::fabs(told_high));
  }
  range.places[0] = range.low;
  range.places[tensor.count - 1] = range.high;
  for (const double value : {min, max}) {
    if (std::isfinite(value)) continue;
    if (std::isnan(value) &&
        std::ranges::any_of(range.places, [](const auto& place) { return std::isnan(place.second); }))
      continue;
    // The place must differ from that of the other value.
    std::uint64_t place = stream.next64() % tensor.count;
    if (const auto taken = range.places.find(place);
        taken != range.places.end() && !std::isfinite(taken->second))
      place = (place + 1) % tensor.count;
    range.places[place] = value;
  }
  return range;
}

void float_elements(const RandomTensor& tensor, RandomStream& stream, Pieces& pieces) {
  const double min = tensor.min.number();
  const double max = tensor.max.number();
  FilledRange range;
  if (std::isfinite(min) && std::isfinite(max) && tensor.finite_max.kind == Bound::BoundKind::none) {
    range = {min, max, {{0, min}}};
    range.places[tensor.count - 1] = max;
  } else {
    range = mended_range(tensor, stream);
  }
  FloatSource source(tensor.dtype, range.low, range.high);
  auto next_place = range.places.begin();
  for (std::uint64_t i = 0; i < tensor.count; ++i) {
    double value = source.next(stream);
    if (next_place != range.places.end() && next_place->first == i) {
      value = source.round(next_place->second);
      ++next_place;
    }
    pieces.add(element_bits(tensor.dtype, value));
  }
}

void integer_elements(const RandomTensor& tensor, RandomStream& stream, Pieces& pieces) {
  if (tensor.min.kind != Bound::BoundKind::integer || tensor.max.kind != Bound::BoundKind::integer)
    throw NotRebuilt("the recorded range does not consist of integers");
  const std::int64_t min = tensor.min.integer;
  const std::int64_t max = tensor.max.integer;
  if (min > max) throw NotRebuilt(fmt::format("the recorded Min {} is larger than Max {}", min, max));
  const std::uint64_t range = static_cast<std::uint64_t>(max) - static_cast<std::uint64_t>(min) + 1;
  const auto draw = [&]() -> std::uint64_t {
    if (range == 0) return stream.next64();
    return range >= std::uint64_t{1} << 32 ? stream.next64() % range : stream.next32() % range;
  };
  const bool is_bool = tensor.dtype == DType::boolean;
  for (std::uint64_t i = 0; i < tensor.count; ++i) {
    std::uint64_t value = static_cast<std::uint64_t>(min) + draw();
    if (is_bool) {
      value = static_cast<std::int64_t>(value) > 0 ? 1 : 0;
    } else if (i + 1 == tensor.count) {
      value = static_cast<std::uint64_t>(max);
    } else if (i == 0) {
      value = static_cast<std::uint64_t>(min);
    }
    pieces.add(value);
  }
}

/// Both parts between -Max and Max, so that no absolute value is much larger than the recorded ones.
void complex_elements(const RandomTensor& tensor, RandomStream& stream, Pieces& pieces) {
  const DType part = tensor::real_type(tensor.dtype);
  const double most = std::isfinite(tensor.max.number()) ? std::fabs(tensor.max.number()) : 1;
  FloatSource source(part, -most * M_SQRT1_2, most * M_SQRT1_2);
  for (std::uint64_t i = 0; i < 2 * tensor.count; ++i) pieces.add(element_bits(part, source.next(stream)));
}

}  // namespace

void random_elements(const RandomTensor& tensor, RandomStream& stream,
                     const std::function<void(std::span<const std::byte>)>& take) {
  const tensor::DTypeInfo& type = tensor::info(tensor.dtype);
  if (tensor.count == 0) return;
  if (tensor.min.kind == Bound::BoundKind::none || tensor.max.kind == Bound::BoundKind::none)
    throw NotRebuilt("neither the tensor nor its Min and Max were recorded");
  const bool is_complex = type.kind == DTypeKind::complex;
  if (type.kind == DTypeKind::floating && type.size < 2)
    throw NotRebuilt(fmt::format("no random data can be made in {}", type.name));
  Pieces pieces(is_complex ? type.size / 2 : type.size, take);
  if (type.kind == DTypeKind::floating) {
    float_elements(tensor, stream, pieces);
  } else if (is_complex) {
    complex_elements(tensor, stream, pieces);
  } else {
    integer_elements(tensor, stream, pieces);
  }
  pieces.flush();
}

}  // namespace msprobe::precheck
