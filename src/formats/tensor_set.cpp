// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_set.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "archive/zip_reader.hpp"
#include "formats/npy.hpp"
#include "formats/npz.hpp"
#include "formats/safetensors.hpp"
#include "formats/torch_tensors.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

class OneTensor final : public TensorSet {
 public:
  explicit OneTensor(StoredTensor tensor) : tensor_(std::move(tensor)) {}
  std::size_t size() const override { return 1; }
  const std::string& name(std::size_t) const override { return name_; }
  StoredTensor tensor(std::size_t) const override { return tensor_; }

 private:
  std::string name_;
  StoredTensor tensor_;
};

Container zip_kind(const std::shared_ptr<const ByteSource>& file) {
  const archive::ZipReader zip(file);
  const auto& entries = zip.entries();
  const auto any_below_root = [&](std::string_view wanted) {
    return std::any_of(entries.begin(), entries.end(), [&](const archive::ZipEntry& entry) {
      return std::string_view(entry.name).substr(std::min(entry.name.find('/'), entry.name.size())) == wanted;
    });
  };
  if (any_below_root("/constants.pkl")) return Container::torchscript;
  if (any_below_root("/data.pkl")) return Container::torch_zip;
  const bool arrays = std::any_of(entries.begin(), entries.end(),
                                  [](const auto& entry) { return entry.name.ends_with(".npy"); });
  // NumPy writes an archive without entries for no arrays at all.
  return arrays || entries.empty() ? Container::npz : Container::other_zip;
}

}  // namespace

std::string_view container_name(Container container) {
  switch (container) {
    case Container::npy:
      return "NumPy npy";
    case Container::npz:
      return "NumPy npz";
    case Container::safetensors:
      return "safetensors";
    case Container::torch_zip:
      return "PyTorch zip";
    case Container::torch_legacy:
      return "PyTorch legacy";
    case Container::torchscript:
      return "TorchScript archive";
    case Container::other_zip:
      return "zip archive";
    case Container::unknown:
      break;
  }
  return "unknown";
}

Container container_of(const std::shared_ptr<const ByteSource>& file) {
  std::array<char, 6> bytes{};
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), file->size()));
  file->read_at(0, std::as_writable_bytes(std::span(bytes).first(length)));
  const std::string_view start(bytes.data(), length);
  if (start == "\x93NUMPY") return Container::npy;
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) return zip_kind(file);
  // A header of 32,896 bytes begins like a pickle of protocol 2, so the brace is asked first.
  if (looks_like_safetensors(*file)) return Container::safetensors;
  if (start.starts_with('\x80')) return Container::torch_legacy;
  return Container::unknown;
}

std::unique_ptr<TensorSet> open_tensors(std::shared_ptr<const ByteSource> file) {
  if (file->size() == 0) throw FormatError(display(file->name()), "an empty file");
  switch (const Container container = container_of(file)) {
    case Container::npy:
      return std::make_unique<OneTensor>(open_npy(std::move(file)));
    case Container::npz:
      return std::make_unique<NpzFile>(std::move(file));
    case Container::safetensors:
      return std::make_unique<SafetensorsFile>(std::move(file));
    case Container::torch_zip:
    case Container::torch_legacy:
      return std::make_unique<TorchTensors>(std::move(file));
    case Container::torchscript:
    case Container::other_zip:
    case Container::unknown:
      throw FormatError(display(file->name()), container == Container::unknown
                                                   ? "no tensor file that we know, by its first bytes"
                                                   : "a " + std::string(container_name(container)) +
                                                         ", which holds no tensors that we read");
  }
  return nullptr;
}

}  // namespace msprobe::formats
