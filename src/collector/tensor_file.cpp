// SPDX-License-Identifier: Apache-2.0
#include "collector/tensor_file.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "formats/tensor_writer.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"

namespace msprobe::collector {
namespace {

/// Types NumPy lacks, as the float32 that holds all their values.
void write_widened(formats::TensorWriter& writer, const TensorView& view) {
  std::array<float, 4096> wide;
  const std::size_t size = view.element_size();
  // Complex numbers are two of a narrower type.
  const bool complex = view.dtype == tensor::DType::complex32;
  const tensor::DType part = complex ? tensor::DType::float16 : view.dtype;
  const std::size_t part_size = complex ? size / 2 : size;
  each_piece(view, [&](std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t n = std::min(wide.size(), bytes.size() / part_size);
      tensor::to_float(part, bytes.first(n * part_size), std::span(wide.data(), n));
      writer.write(std::as_bytes(std::span(wide.data(), n)));
      bytes = bytes.subspan(n * part_size);
    }
  });
}

}  // namespace

void write_tensor_file(const std::string& path, const TensorView& view) {
  const std::optional<formats::OutputFormat> format =
      formats::output_format_from_name(std::string_view(path).substr(path.rfind('.') + 1));
  if (format != formats::OutputFormat::pt && format != formats::OutputFormat::npy)
    throw IoError(display(path), "the name ends neither in .pt nor in .npy");
  const tensor::DType written = formats::written_dtype(*format, view.dtype).value();
  OutputFile file(path);
  const auto writer = formats::make_tensor_writer(
      *format, file, {{{}, written, std::vector(view.shape.begin(), view.shape.begin() + view.rank)}});
  writer->begin(0);
  if (tensor::info(written).size == view.element_size()) {
    each_piece(view, [&](std::span<const std::byte> bytes) { writer->write(bytes); });
  } else {
    write_widened(*writer, view);
  }
  writer->end();
  writer->finish();
  file.commit();
}

}  // namespace msprobe::collector
