// SPDX-License-Identifier: Apache-2.0
#include "parse/copy_tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/interrupt.hpp"
#include "tensor/convert.hpp"

namespace msprobe::parse {
namespace {

using tensor::DType;
using tensor::DTypeKind;

constexpr std::size_t kCopyPiece = std::size_t{32} << 10;  // elements at a time

/// Statistics of raw elements of any type.
class ElementStatistics {
 public:
  explicit ElementStatistics(DType dtype) : dtype_(dtype), kind_(tensor::info(dtype).kind) {}

  void add(std::span<const std::byte> raw, std::size_t count) {
    if (dtype_ == DType::int64) {
      accumulator_.add(std::span<const std::int64_t>(whole(signed_, raw, count)));
    } else if (dtype_ == DType::uint64) {
      accumulator_.add(std::span<const std::uint64_t>(whole(unsigned_, raw, count)));
    } else if (kind_ == DTypeKind::floating && dtype_ != DType::float64) {
      singles_.resize(count);
      tensor::to_float(dtype_, raw, singles_);
      accumulator_.add(std::span<const float>(singles_));
    } else {
      const bool complex = kind_ == DTypeKind::complex;
      doubles_.resize(complex ? 2 * count : count);
      tensor::to_double(dtype_, raw, doubles_);
      if (complex) {
        for (std::size_t i = 0; i < count; ++i)
          doubles_[i] = std::hypot(doubles_[2 * i], doubles_[2 * i + 1]);
        doubles_.resize(count);
      }
      accumulator_.add(std::span<const double>(doubles_));
    }
  }
  tensor::Statistics finish() const { return accumulator_.finish(); }

 private:
  template <typename T>
  static const std::vector<T>& whole(std::vector<T>& values, std::span<const std::byte> raw,
                                     std::size_t count) {
    values.resize(count);
    if (count != 0) std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }

  DType dtype_;
  DTypeKind kind_;
  tensor::StatisticsAccumulator accumulator_;
  std::vector<float> singles_;
  std::vector<double> doubles_;
  std::vector<std::int64_t> signed_;
  std::vector<std::uint64_t> unsigned_;
};

/// The elements as `to`: widened, or as they are.
std::span<std::byte> convert(DType from, DType to, std::span<std::byte> raw, std::vector<float>& buffer) {
  const bool same_bytes =
      from == to || tensor::info(from).kind == DTypeKind::integer;  // quantized: their integers
  if (same_bytes) return raw;
  const bool complex = from == DType::complex32;
  buffer.resize(raw.size() / (complex ? sizeof(std::uint16_t) : tensor::info(from).size));
  tensor::to_float(complex ? DType::float16 : from, raw, buffer);
  return std::as_writable_bytes(std::span(buffer));
}

}  // namespace

tensor::Statistics copy_tensor(const formats::StoredTensor& source, DType to, formats::TensorWriter& writer) {
  const std::size_t size = tensor::info(source.dtype).size;
  formats::ElementReader reader(source);
  ElementStatistics measure(source.dtype);
  std::vector<std::byte> raw;
  std::vector<float> widened;
  while (reader.remaining() > 0) {
    check_interrupt();
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(reader.remaining(), kCopyPiece));
    raw.resize(count * size);
    reader.read(raw);
    if (source.dtype == DType::boolean) {
      // Python takes any byte but 0 for True, and its libraries expect 1 there.
      for (std::byte& value : raw) value = value == std::byte{0} ? value : std::byte{1};
    }
    measure.add(raw, count);
    const std::span<std::byte> out = convert(source.dtype, to, raw, widened);
    if constexpr (std::endian::native == std::endian::big) tensor::swap_bytes(to, out);
    writer.write(out);
  }
  return measure.finish();
}

}  // namespace msprobe::parse
