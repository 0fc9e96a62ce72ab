// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "archive/zip_writer.hpp"
#include "formats/writers.hpp"

namespace msprobe::formats {
namespace {

// As numpy.savez: one stored `.npy` for each array.
class NpzWriter final : public TensorWriter {
 public:
  NpzWriter(OutputFile& file, std::vector<TensorSpec> specs)
      : TensorWriter(std::move(specs)), file_(file), zip_(file, archive::ZipStyle::plain) {
    check_names(specs_, file.path());
  }
  void begin(std::size_t index, std::optional<std::uint32_t>) override {
    const TensorSpec& spec = specs_.at(index);
    const std::string header = npy_header(spec.dtype, spec.shape);
    zip_.begin(spec.name + ".npy", header.size() + payload_size(spec, file_.path()));
    zip_.write(header);
  }
  void write(std::span<const std::byte> bytes) override { zip_.write(bytes); }
  void end() override { zip_.end(); }
  void finish() override { zip_.finish(); }

 private:
  OutputFile& file_;
  archive::ZipWriter zip_;
};

}  // namespace

std::unique_ptr<TensorWriter> make_npz_writer(OutputFile& file, std::vector<TensorSpec> specs) {
  return std::make_unique<NpzWriter>(file, std::move(specs));
}

}  // namespace msprobe::formats
