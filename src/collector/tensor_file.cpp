// SPDX-License-Identifier: Apache-2.0
#include "collector/tensor_file.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "formats/tensor_writer.hpp"
#include "support/crc32.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"

namespace msprobe::collector {
namespace {

/// Writes types that NumPy lacks as float32, which holds all their values.
void write_widened(formats::TensorWriter& writer, tensor::DType dtype, std::span<const std::byte> bytes) {
  std::array<float, 4096> wide;
  // A complex number is two numbers of a narrower type.
  const tensor::DType part = dtype == tensor::DType::complex32 ? tensor::DType::float16 : dtype;
  const std::size_t size = tensor::info(part).size;
  while (!bytes.empty()) {
    const std::size_t n = std::min(wide.size(), bytes.size() / size);
    tensor::to_float(part, bytes.first(n * size), std::span(wide.data(), n));
    writer.write(std::as_bytes(std::span(wide.data(), n)));
    bytes = bytes.subspan(n * size);
  }
}

}  // namespace

std::uint32_t write_tensor_file(const std::string& path, const TensorView& view,
                                std::optional<std::uint32_t> crc) {
  const std::optional<formats::OutputFormat> format =
      formats::output_format_from_name(std::string_view(path).substr(path.rfind('.') + 1));
  if (format != formats::OutputFormat::pt && format != formats::OutputFormat::npy)
    throw IoError(display(path), "the name must end in .pt or .npy");
  const tensor::DType written = formats::written_dtype(*format, view.dtype).value();
  OutputFile file(path);
  const auto writer = formats::make_tensor_writer(*format, file, {{{}, written, view.lengths()}});
  const bool widened = tensor::info(written).size != view.element_size();
  writer->begin(0, widened ? std::nullopt : crc);
  std::uint32_t sum = 0;
  each_piece(view, [&](std::span<const std::byte> bytes) {
    if (!crc) sum = crc32(sum, bytes);
    widened ? write_widened(*writer, view.dtype, bytes) : writer->write(bytes);
  });
  writer->end();
  writer->finish();
  file.commit();
  return crc.value_or(sum);
}

}  // namespace msprobe::collector
