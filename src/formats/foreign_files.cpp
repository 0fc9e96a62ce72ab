// SPDX-License-Identifier: Apache-2.0
#include "formats/foreign_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "archive/zip_reader.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

struct ForeignFormat {
  std::size_t offset;
  std::string_view mark;
  std::string_view name;
};

constexpr std::string_view kLfs = "Git LFS";

constexpr std::array kFormats = {
    ForeignFormat{0, "version https://git-lfs.github.com/spec/", kLfs},
    ForeignFormat{0, "\x89HDF\r\n\x1a\n", "HDF5"},
    ForeignFormat{0, "\x1f\x8b\x08", "gzip"},
    ForeignFormat{0, "BZh", "bzip2"},
    ForeignFormat{0,
                  "\xfd"
                  "7zXZ",
                  "xz"},
    ForeignFormat{0, "\x28\xb5\x2f\xfd", "zstd"},
    ForeignFormat{0, "7z\xbc\xaf\x27\x1c", "7z"},
    ForeignFormat{0, "Rar!\x1a\x07", "RAR"},
    ForeignFormat{0, "SQLite format 3", "SQLite"},
    ForeignFormat{0, "%PDF-", "PDF"},
    ForeignFormat{0, "PAR1", "Parquet"},
    ForeignFormat{0, "ARROW1", "Arrow"},
    ForeignFormat{257, "ustar", "tar"},
};

}  // namespace

std::string foreign_format(const ByteSource& file) {
  constexpr std::uint64_t kRead = 264;
  const std::string start = first_bytes(file, kRead);
  const auto* found = std::ranges::find_if(kFormats, [&](const ForeignFormat& format) {
    return start.size() >= format.offset &&
           std::string_view(start).substr(format.offset).starts_with(format.mark);
  });
  return found == kFormats.end() ? std::string() : std::string(found->name);
}

bool is_packed_format(const std::string& format) {
  constexpr std::array<std::string_view, 7> kPacked = {"gzip", "bzip2", "xz", "zstd", "7z", "RAR", "tar"};
  return std::ranges::find(kPacked, format) != kPacked.end();
}

std::string foreign_reason(const ByteSource& file, const std::string& format) {
  if (format != kLfs) {
    if (format == "HDF5")
      return "an HDF5 file (Keras), which msprobe does not read: save its weights as safetensors or npz";
    return fmt::format("a {} file, which msprobe does not read{}", format,
                       is_packed_format(format) ? ": unpack it first" : "");
  }
  // Lines of a key and a value (spec.md of Git LFS).
  constexpr std::uint64_t kLargest = 1024;
  const std::string text = first_bytes(file, kLargest);
  constexpr std::string_view kSize = "\nsize ";
  const std::size_t at = text.find(kSize);
  std::string size;
  if (at != std::string::npos) {
    const std::string_view rest = std::string_view(text).substr(at + kSize.size());
    if (const auto bytes = whole_number<std::uint64_t>(rest.substr(0, rest.find('\n'))))
      size = " of " + human_bytes(*bytes);
  }
  return fmt::format("a Git LFS pointer to a file{} that was not downloaded ('git lfs pull' fetches it)",
                     size);
}

std::string foreign_zip_reason(const std::shared_ptr<const ByteSource>& file) {
  const archive::ZipReader zip(file);
  const auto member_like = [&](std::initializer_list<std::string_view> endings) -> const archive::ZipEntry* {
    const auto found = std::ranges::find_if(zip.entries(), [&](const archive::ZipEntry& entry) {
      return std::ranges::any_of(endings, [&](std::string_view end) { return entry.name.ends_with(end); });
    });
    return found == zip.entries().end() ? nullptr : &*found;
  };
  if (member_like({"/constants.pkl"}) != nullptr) {
    return "a TorchScript archive, which msprobe does not read: "
           "torch.save(torch.jit.load(FILE).state_dict(), ...) gives its weights";
  }
  if (member_like({"/archive_format", "serialized_exported_program.json"}) != nullptr) {
    return "an exported program, which msprobe does not read: torch.save(torch.export.load(FILE).state_dict, "
           "...) gives its weights";
  }
  if (member_like({".weights.h5"}) != nullptr)
    return "a Keras file, whose weights (HDF5) msprobe does not read: save them as safetensors or npz";
  const auto* packed =
      member_like({".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".gguf", ".onnx", ".msgpack", ".distcp"});
  if (packed != nullptr)
    return fmt::format("a zip archive of files ({}), which msprobe does not read: unpack it first",
                       display(packed->name));
  return "a zip archive, which has no tensors that msprobe reads";
}

}  // namespace msprobe::formats
