// SPDX-License-Identifier: Apache-2.0
// Folders of checkpoints whose files are foreign: an input is a part a file with a mark between them, the
// sizes of eight storages (two bytes each) and a pickle. A container is put around each, so that mutations
// reach the readers of pickles and not the checksums.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "archive/zip_writer.hpp"
#include "checkpoint/checkpoint.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "tensor/dtype.hpp"

namespace msprobe {

/// The parts between the marks; the first few, as many as a folder may have files here.
inline std::vector<std::string_view> files_of(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kMark = "\xff\xfemark";
  constexpr std::size_t kMostFiles = 8;
  std::vector<std::string_view> files;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (files.size() < kMostFiles) {
    const std::size_t end = rest.find(kMark);
    files.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + kMark.size());
  }
  return files;
}

/// A folder of this process alone, which goes with it.
class FuzzFolder {
 public:
  FuzzFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "msprobe-fuzz-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~FuzzFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;

  const std::string& path() const { return path_; }
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove(entry);
  }
  /// A file as PyTorch writes it.
  void add(const std::string& name, std::string_view part) const {
    constexpr std::size_t kStorages = 8;
    std::vector<std::size_t> sizes(kStorages);
    for (std::size_t i = 0; i < kStorages && part.size() >= 2; ++i) {
      sizes[i] = (static_cast<unsigned char>(part[0]) | static_cast<unsigned char>(part[1]) << 8) & 0xfff;
      part.remove_prefix(2);
    }
    OutputFile file(path_ + "/" + name);
    archive::ZipWriter zip(file, archive::ZipStyle::torch);
    zip.add("archive/data.pkl", part);
    zip.add("archive/byteorder", "little");
    for (std::size_t i = 0; i < kStorages; ++i)
      zip.add("archive/data/" + std::to_string(i), std::string(sizes[i], '\x3f'));
    zip.add("archive/version", "3\n");
    zip.finish();
    file.commit();
  }

 private:
  std::string path_;
};

/// Loads the checkpoint, and reads those of its first parameters that are small enough: layers and experts
/// may be many.
inline void read_checkpoint(const std::string& path) {
  constexpr std::int64_t kMost = 1 << 14;
  constexpr std::size_t kMostEntries = 256;
  const auto read = [&](const checkpoint::Parameter& parameter) {
    if (checkpoint::checked_numel(parameter.shape, parameter.name) > kMost) return;
    checkpoint::ParameterReader reader(parameter);
    std::vector<std::byte> bytes(static_cast<std::size_t>(reader.remaining()) *
                                 tensor::info(parameter.dtype).size);
    reader.read(bytes);
  };
  try {
    const checkpoint::Checkpoint loaded = checkpoint::load(path, {.optimizer = true, .allow_partial = true});
    for (std::size_t i = 0; i < std::min(loaded.entries.size(), kMostEntries); ++i) {
      const checkpoint::CheckpointEntry& entry = loaded.entries[i];
      if (!entry.problem.empty()) continue;
      try {
        read(entry.parameter);
        for (const checkpoint::Replica& replica : entry.replicas) read(replica.parameter);
        for (const checkpoint::Parameter& slice : entry.slices) read(slice);
      } catch (const FormatError&) {
      }
    }
  } catch (const FormatError&) {
  }
}

}  // namespace msprobe
