// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "formats/stored_tensor.hpp"
#include "formats/writers.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using tensor::DType;

constexpr std::size_t kMaxZipName = 60'000;  // a zip archive has 16 bits for the length

constexpr std::array<std::pair<std::string_view, OutputFormat>, 5> kNames = {{
    {"pt", OutputFormat::pt},
    {"npy", OutputFormat::npy},
    {"npz", OutputFormat::npz},
    {"safetensors", OutputFormat::safetensors},
    {"bin", OutputFormat::bin},
}};

}  // namespace

std::optional<OutputFormat> output_format_from_name(std::string_view name) {
  const auto found = std::ranges::find_if(kNames, [&](const auto& entry) { return entry.first == name; });
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

std::string_view extension(OutputFormat format) {
  return kNames.at(static_cast<std::size_t>(format)).first;
}

bool holds_many(OutputFormat format) {
  return format != OutputFormat::npy && format != OutputFormat::bin;
}

std::optional<DType> written_dtype(OutputFormat format, DType dtype) {
  if (format == OutputFormat::bin) return dtype;
  switch (dtype) {
    case DType::qint8:
      return DType::int8;
    case DType::quint8:
      return DType::uint8;
    case DType::qint32:
      return DType::int32;
    case DType::hifloat8:
      return DType::float32;
    case DType::complex32:
      return format == OutputFormat::pt ? DType::complex32 : DType::complex64;
    case DType::complex128:
      if (format == OutputFormat::safetensors) return std::nullopt;
      return dtype;
    default:
      break;
  }
  const bool numpy = format == OutputFormat::npy || format == OutputFormat::npz;
  if (numpy && tensor::info(dtype).numpy.empty()) return DType::float32;  // bfloat16 and the float8 types
  return dtype;
}

TensorWriter::TensorWriter(std::vector<TensorSpec> specs) : specs_(std::move(specs)), order_(specs_.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

std::unique_ptr<TensorWriter> make_tensor_writer(OutputFormat format, OutputFile& file,
                                                 std::vector<TensorSpec> specs) {
  switch (format) {
    case OutputFormat::pt:
      return make_torch_writer(file, std::move(specs));
    case OutputFormat::npz:
      return make_npz_writer(file, std::move(specs));
    case OutputFormat::safetensors:
      return make_safetensors_writer(file, std::move(specs));
    case OutputFormat::npy:
    case OutputFormat::bin:
      break;
  }
  if (specs.size() != 1) throw std::logic_error("a file of one tensor was given another number");
  payload_size(specs[0], file.path());  // it must fit
  if (format == OutputFormat::npy) file.write(npy_header(specs[0].dtype, specs[0].shape));
  return std::make_unique<FlatWriter>(file, std::move(specs));
}

void FlatWriter::begin(std::size_t index, std::optional<std::uint32_t>) {
  left_ = payload_size(specs_.at(index), file_.path());
}

void FlatWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > left_) throw std::logic_error("a tensor grows beyond its size");
  left_ -= bytes.size();
  file_.write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void FlatWriter::end() {
  if (left_ != 0) throw std::logic_error("a tensor is incomplete");
}

std::string npy_header(DType dtype, const std::vector<std::int64_t>& shape) {
  constexpr std::size_t kStart = 10;  // magic, version, length
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kGrowth = 21;  // NumPy leaves room for the first axis to grow to any 64-bit number
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", tensor::info(dtype).numpy,
                  fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  if (!shape.empty()) text.append(kGrowth - std::to_string(shape[0]).size(), ' ');
  text.append(kAlignment - (kStart + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  append_le(header, static_cast<std::uint16_t>(text.size()));
  return header + text;
}

std::uint64_t payload_size(const TensorSpec& spec, const std::string& file) {
  const auto size = checked_size(spec.shape, tensor::info(spec.dtype).size);
  if (!size) throw FormatError(display(file), "a tensor with more elements than a file can hold");
  return *size;
}

void check_spec(const TensorSpec& spec, const std::string& file) {
  if (spec.name.empty()) throw FormatError(display(file), "a tensor without a name cannot be put in it");
  if (spec.name.size() > kMaxZipName || spec.name.find('\0') != std::string::npos)
    throw FormatError(display(file), "a tensor's name is too long, or contains a zero byte");
  if (!is_utf8(spec.name))
    throw FormatError(display(file), fmt::format("a tensor's name is not UTF-8: {}", display(spec.name)));
  if (spec.name == "__metadata__")
    throw FormatError(display(file), "no tensor can be named __metadata__");  // safetensors keeps it
  payload_size(spec, file);
}

void check_names(const std::vector<TensorSpec>& specs, const std::string& file) {
  std::unordered_set<std::string_view> seen;
  for (const TensorSpec& spec : specs) {
    check_spec(spec, file);
    if (!seen.insert(spec.name).second)
      throw FormatError(display(file), fmt::format("two tensors are named {}", display(spec.name)));
  }
}

}  // namespace msprobe::formats
