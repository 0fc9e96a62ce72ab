// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "formats/safetensors.hpp"
#include "formats/writers.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

constexpr std::size_t kAlignment = 8;

class SafetensorsWriter final : public FlatWriter {
 public:
  SafetensorsWriter(OutputFile& file, std::vector<TensorSpec> specs) : FlatWriter(file, std::move(specs)) {
    check_names(specs_, file.path());
    // Widest types first: then every tensor is aligned without holes, which the format forbids.
    std::ranges::sort(order_, [&](std::size_t a, std::size_t b) {
      const std::size_t size_a = tensor::info(specs_[a].dtype).size;
      const std::size_t size_b = tensor::info(specs_[b].dtype).size;
      return size_a != size_b ? size_a > size_b : specs_[a].name < specs_[b].name;
    });
    std::string header = "{";
    std::uint64_t offset = 0;
    for (const std::size_t index : order_) {
      const TensorSpec& spec = specs_[index];
      std::uint64_t end = 0;
      if (__builtin_add_overflow(offset, payload_size(spec, file.path()), &end))
        throw FormatError(display(file.path()), "more bytes than a file can hold");
      if (valid_utf8(spec.name) != spec.name)
        throw FormatError(display(file.path()), "the name of the tensor " + display(spec.name) +
                                                    " is not UTF-8, which safetensors requires");
      if (safetensors_name(spec.dtype).empty())
        throw std::logic_error("safetensors has no type " + std::string(tensor::info(spec.dtype).name));
      std::string name;
      append_json_string(name, spec.name, JsonText::utf8);
      header += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                            header.size() == 1 ? "" : ",", name, safetensors_name(spec.dtype),
                            fmt::join(spec.shape, ","), offset, end);
      offset = end;
    }
    header += '}';
    header.append((kAlignment - header.size() % kAlignment) % kAlignment, ' ');
    if (header.size() > SafetensorsFile::kMaxHeader)
      throw FormatError(display(file.path()), "the header is too large for a safetensors file");
    std::string length;
    append_le<std::uint64_t>(length, header.size());
    file_.write(length + header);
  }
};

}  // namespace

std::unique_ptr<TensorWriter> make_safetensors_writer(OutputFile& file, std::vector<TensorSpec> specs) {
  return std::make_unique<SafetensorsWriter>(file, std::move(specs));
}

}  // namespace msprobe::formats
