// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "formats/writers.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using tensor::DType;

constexpr std::size_t kAlignment = 8;
constexpr std::size_t kMaxHeader = 100'000'000;  // what the safetensors library accepts

std::string_view safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return "F64";
    case DType::float32:
      return "F32";
    case DType::float16:
      return "F16";
    case DType::bfloat16:
      return "BF16";
    case DType::float8_e4m3fn:
      return "F8_E4M3";
    case DType::float8_e5m2:
      return "F8_E5M2";
    case DType::float8_e4m3fnuz:
      return "F8_E4M3FNUZ";
    case DType::float8_e5m2fnuz:
      return "F8_E5M2FNUZ";
    case DType::float8_e8m0fnu:
      return "F8_E8M0";
    case DType::int64:
      return "I64";
    case DType::int32:
      return "I32";
    case DType::int16:
      return "I16";
    case DType::int8:
      return "I8";
    case DType::uint64:
      return "U64";
    case DType::uint32:
      return "U32";
    case DType::uint16:
      return "U16";
    case DType::uint8:
      return "U8";
    case DType::boolean:
      return "BOOL";
    case DType::complex64:
      return "C64";
    default:
      throw std::logic_error("safetensors has no type " + std::string(tensor::info(dtype).name));
  }
}

class SafetensorsWriter final : public TensorWriter {
 public:
  SafetensorsWriter(OutputFile& file, std::vector<TensorSpec> specs)
      : TensorWriter(std::move(specs)), file_(file) {
    check_names(specs_, file.path());
    // Widest types first: then every tensor is aligned without holes, which the format forbids.
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      const std::size_t size_a = tensor::info(specs_[a].dtype).size;
      const std::size_t size_b = tensor::info(specs_[b].dtype).size;
      return size_a != size_b ? size_a > size_b : specs_[a].name < specs_[b].name;
    });
    header_ = "{";
    std::uint64_t offset = 0;
    for (const std::size_t index : order_) {
      const TensorSpec& spec = specs_[index];
      std::uint64_t end = 0;
      if (__builtin_add_overflow(offset, payload_size(spec, file.path()), &end))
        throw FormatError(display(file.path()), "more bytes than any file holds");
      header_ += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                             header_.size() == 1 ? "" : ",", nlohmann::json(spec.name).dump(),
                             safetensors_name(spec.dtype), fmt::join(spec.shape, ","), offset, end);
      offset = end;
    }
    header_ += '}';
    header_.append((kAlignment - header_.size() % kAlignment) % kAlignment, ' ');
    if (header_.size() > kMaxHeader)
      throw FormatError(display(file.path()), "a header too large for a safetensors file");
    std::string length;
    append_le<std::uint64_t>(length, header_.size());
    file_.write(length + header_);
  }
  void begin(std::size_t index) override { left_ = payload_size(specs_.at(index), file_.path()); }
  void write(std::span<const std::byte> bytes) override {
    if (bytes.size() > left_) throw std::logic_error("a tensor grows beyond its size");
    left_ -= bytes.size();
    file_.write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  void end() override {
    if (left_ != 0) throw std::logic_error("a tensor is incomplete");
  }
  void finish() override {}

 private:
  OutputFile& file_;
  std::string header_;
  std::uint64_t left_ = 0;
};

}  // namespace

std::unique_ptr<TensorWriter> make_safetensors_writer(OutputFile& file, std::vector<TensorSpec> specs) {
  return std::make_unique<SafetensorsWriter>(file, std::move(specs));
}

}  // namespace msprobe::formats
