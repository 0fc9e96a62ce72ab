// SPDX-License-Identifier: Apache-2.0
// Reads the elements of one side of a comparison piece by piece, in the type in which both sides are
// computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "tensor/convert.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::tensor {

/// The type in which a pair is computed: float, double, or integers that no double holds.
enum class Work : std::uint8_t { single, real, signed_integer, unsigned_integer };

inline Work work_of(DType first, DType second) {
  const auto is_narrow_float = [](DType dtype) {
    return info(dtype).kind == DTypeKind::floating && dtype != DType::float64;
  };
  if (is_narrow_float(first) && is_narrow_float(second)) return Work::single;
  if (first == second && first == DType::int64) return Work::signed_integer;
  if (first == second && first == DType::uint64) return Work::unsigned_integer;
  return Work::real;
}

/// Calls `body(T{})` with the type of `work`.
template <typename Body>
auto with_type(Work work, Body body) {
  switch (work) {
    case Work::single:
      return body(float{});
    case Work::signed_integer:
      return body(std::int64_t{});
    case Work::unsigned_integer:
      return body(std::uint64_t{});
    case Work::real:
      break;
  }
  return body(double{});
}

/// The double numbers that represent elements: a complex element gives two numbers.
enum class Parts : std::uint8_t {
  as_stored,
  real_only,  // the first number of complex elements
  complex,    // real elements get a zero after them
};

/// `Reader` is constructed from a tensor and has remaining() and read(bytes), which fills them with whole
/// elements.
template <typename T, typename Reader>
class ElementFeed {
 public:
  template <typename Tensor>
  explicit ElementFeed(const Tensor& tensor, Parts parts = Parts::as_stored)
      : reader_(tensor), dtype_(tensor.dtype), parts_(parts) {}

  std::int64_t remaining() const { return reader_.remaining(); }
  /// The size of that many elements as they are stored.
  std::size_t bytes(std::size_t count) const { return count * info(dtype_).size; }

  /// The next elements; valid until the next call.
  std::span<T> next(std::size_t count) {
    if (is_direct()) {
      values_.resize(count);
      reader_.read(std::as_writable_bytes(std::span(values_)));
      stored_ = std::as_bytes(std::span(values_));
      return values_;
    }
    raw_.resize(bytes(count));
    reader_.read(raw_);
    stored_ = raw_;
    if constexpr (std::is_same_v<T, float>) {
      values_.resize(count);
      to_float(dtype_, raw_, values_);
    } else if constexpr (std::is_same_v<T, double>) {
      widen(count);
    } else {
      throw std::logic_error("integers are read as they are stored");
    }
    return values_;
  }
  /// The stored bytes of the piece that next() returned.
  std::span<const std::byte> stored() const { return stored_; }

 private:
  bool is_direct() const {
    if constexpr (std::is_same_v<T, float>) return dtype_ == DType::float32;
    if constexpr (std::is_same_v<T, double>) return dtype_ == DType::float64 && parts_ != Parts::complex;
    return std::is_integral_v<T>;
  }

  void widen(std::size_t count) {
    const bool complex = info(dtype_).kind == DTypeKind::complex;
    values_.resize(complex || parts_ == Parts::complex ? 2 * count : count);
    to_double(dtype_, raw_, std::span(values_).first(complex ? 2 * count : count));
    if (complex && parts_ == Parts::real_only) {
      for (std::size_t i = 0; i < count; ++i) values_[i] = values_[2 * i];
      values_.resize(count);
    } else if (!complex && parts_ == Parts::complex) {
      for (std::size_t i = count; i-- > 0;) {
        values_[2 * i] = values_[i];
        values_[2 * i + 1] = 0;
      }
    }
  }

  Reader reader_;
  DType dtype_;
  Parts parts_;
  std::vector<std::byte> raw_;
  std::vector<T> values_;
  std::span<const std::byte> stored_;
};

}  // namespace msprobe::tensor
