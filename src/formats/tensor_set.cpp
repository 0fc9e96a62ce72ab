// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "archive/zip_reader.hpp"
#include "formats/adump.hpp"
#include "formats/atb_bin.hpp"
#include "formats/flax.hpp"
#include "formats/foreign_files.hpp"
#include "formats/gguf.hpp"
#include "formats/limits.hpp"
#include "formats/mindspore_ckpt.hpp"
#include "formats/npy.hpp"
#include "formats/npz.hpp"
#include "formats/onnx.hpp"
#include "formats/safetensors.hpp"
#include "formats/torch_tensors.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
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

class AdumpTensors final : public TensorSet {
 public:
  explicit AdumpTensors(std::shared_ptr<const ByteSource> file) : dump_(open_adump(std::move(file))) {
    for (const AdumpItem& item : dump_.items) {
      if (item.role != AdumpRole::input && item.role != AdumpRole::output) continue;
      names_.push_back((item.role == AdumpRole::input ? "input." : "output.") + std::to_string(item.index));
      items_.push_back(&item);
    }
  }
  std::size_t size() const override { return items_.size(); }
  const std::string& name(std::size_t index) const override { return names_.at(index); }
  StoredTensor tensor(std::size_t index) const override { return adump_tensor(dump_, *items_.at(index)); }

 private:
  AdumpFile dump_;
  std::vector<std::string> names_;
  std::vector<const AdumpItem*> items_;
};

/// Opens another file in the folder of `file`.
std::shared_ptr<const ByteSource> open_beside(const std::string& file, const std::string& name) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return open_file_beneath(folder.empty() ? "." : folder, name);
}

/// An adump file begins with the length of its header. The first bytes of every other kind of file, read as a
/// length, exceed the size of the file.
bool looks_like_adump(const ByteSource& file) {
  std::array<std::byte, 8> start{};
  if (file.size() <= start.size()) return false;
  file.read_at(0, start);
  const auto length = load_le<std::uint64_t>(start.data());
  return length != 0 && length <= file.size() - start.size();
}

Container zip_kind(const std::shared_ptr<const ByteSource>& file) {
  const archive::ZipReader zip(file);
  const auto& entries = zip.entries();
  const auto any_below_root = [&](std::string_view wanted) {
    return std::ranges::any_of(entries, [&](const archive::ZipEntry& entry) {
      return std::string_view(entry.name).substr(std::min(entry.name.find('/'), entry.name.size())) == wanted;
    });
  };
  if (any_below_root("/constants.pkl")) return Container::torchscript;
  if (any_below_root("/data.pkl")) return Container::torch_zip;
  const bool arrays =
      std::ranges::any_of(entries, [](const auto& entry) { return entry.name.ends_with(".npy"); });
  // NumPy writes an archive without entries when it saves no arrays.
  return arrays || entries.empty() ? Container::npz : Container::other_zip;
}

// An empty tensor takes fifty bytes of the header, but much more memory in every list and comparison.
std::unique_ptr<TensorSet> open_safetensors(const std::shared_ptr<const ByteSource>& file) {
  auto set = std::make_unique<SafetensorsFile>(file);
  MemoryAllowance allowance(file->size());
  for (std::size_t i = 0; i < set->size(); ++i) {
    if (!allowance.take_tensor(set->name(i).size(), set->shape(i).size()))
      throw FormatError(display(file->name()), kTooManyTensors);
  }
  return set;
}

}  // namespace

std::string_view container_name(Container container) {
  constexpr std::string_view kNames[] = {
      "NumPy npy", "NumPy npz",           "safetensors",          "PyTorch zip", "PyTorch legacy",
      "ATB bin",   "kernel dump (adump)", "MindSpore checkpoint", "GGUF",        "ONNX",
      "Flax",      "TorchScript archive", "zip archive",          "unknown"};
  return kNames[static_cast<std::size_t>(container)];
}

Container container_of(const std::shared_ptr<const ByteSource>& file) {
  const std::string start = first_bytes(*file, 6);
  if (start == "\x93NUMPY") return Container::npy;
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) return zip_kind(file);
  if (looks_like_gguf(*file)) return Container::gguf;
  if (!foreign_format(*file).empty()) return Container::unknown;
  // The length of a header may look like the beginning of a pickle, so these two tests come first. No field
  // of an adump header begins with the brace of a safetensors header.
  if (looks_like_safetensors(*file)) return Container::safetensors;
  if (looks_like_adump(*file)) return Container::adump;
  // A pickle could also begin with a letter, but it would not continue with one of these words.
  if (start.starts_with('$') || start.starts_with("dtype=") || start.starts_with("dims=") ||
      start.starts_with("format"))
    return Container::atb_bin;
  if (start.starts_with('\x80')) return Container::torch_legacy;
  if (looks_like_mindspore_ckpt(*file)) return Container::mindspore;
  if (looks_like_flax(*file)) return Container::flax;
  if (looks_like_onnx(*file)) return Container::onnx;
  return Container::unknown;
}

std::unique_ptr<TensorSet> open_tensors(std::shared_ptr<const ByteSource> file) {
  if (file->size() == 0) throw FormatError(display(file->name()), "an empty file");
  switch (container_of(file)) {
    case Container::npy:
      return std::make_unique<OneTensor>(open_npy(std::move(file)));
    case Container::npz:
      return std::make_unique<NpzFile>(std::move(file));
    case Container::safetensors:
      return open_safetensors(file);
    case Container::torch_zip:
    case Container::torch_legacy:
      return std::make_unique<TorchTensors>(file);
    case Container::atb_bin: {
      const std::string name = file->name();
      return std::make_unique<OneTensor>(
          open_atb_bin(file, [&](const std::string& other) { return open_beside(name, other); }));
    }
    case Container::adump:
      return std::make_unique<AdumpTensors>(std::move(file));
    case Container::mindspore:
      return std::make_unique<MindSporeCkpt>(std::move(file));
    case Container::gguf:
      return std::make_unique<GgufFile>(std::move(file));
    case Container::flax:
      return std::make_unique<FlaxFile>(std::move(file));
    case Container::onnx: {
      const std::string name = file->name();
      return std::make_unique<OnnxModel>(
          std::move(file), [name](const std::string& other) { return open_beside(name, other); });
    }
    case Container::torchscript:
    case Container::other_zip:
      throw FormatError(display(file->name()), foreign_zip_reason(file));
    case Container::unknown:
      break;
  }
  if (ends_within_header(*file))
    throw FormatError(display(file->name()), "a safetensors file, truncated within its header");
  const std::string format = foreign_format(*file);
  throw FormatError(display(file->name()), format.empty() ? "not a known tensor file, by its first bytes"
                                                          : foreign_reason(*file, format));
}

}  // namespace msprobe::formats
