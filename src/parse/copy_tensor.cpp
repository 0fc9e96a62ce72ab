// SPDX-License-Identifier: Apache-2.0
#include "parse/copy_tensor.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "formats/element_values.hpp"
#include "support/interrupt.hpp"
#include "tensor/convert.hpp"

namespace msprobe::parse {
namespace {

using tensor::DType;
using tensor::DTypeKind;

constexpr std::size_t kCopyPiece = std::size_t{32} << 10;  // elements at a time

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
  formats::ElementStatistics measure(source.dtype);
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
    measure.add(raw);
    const std::span<std::byte> out = convert(source.dtype, to, raw, widened);
    if constexpr (std::endian::native == std::endian::big) tensor::swap_bytes(to, out);
    writer.write(out);
  }
  return measure.finish();
}

}  // namespace msprobe::parse
