// SPDX-License-Identifier: Apache-2.0
// Reads a zip archive in place. The central directory alone defines the contents; a local header only gives
// the start of the payload, and must agree with the directory. Nothing is ever extracted to disk, so entry
// names are keys and never become paths.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::archive {

enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

struct ZipEntry {
  std::string name;
  ZipMethod method = ZipMethod::stored;
  std::uint16_t flags = 0;
  std::uint32_t crc32 = 0;  // as declared; PyTorch can omit its computation
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header_offset = 0;
  bool link = false;  // a symbolic link, according to the attributes of its file system
};

struct ZipLimits {
  std::uint64_t max_entries = 2'000'000;
  std::uint64_t max_directory = std::uint64_t{256} << 20;  // bytes of the central directory
  bool allow_twins = false;                                // entries of one name; find() gives the last
};

/// Reads the directory in the constructor. Throws FormatError with the file's name for an archive that is
/// broken, declares wrong sizes, has overlapping entries or two with one name, is encrypted or split, uses a
/// method other than stored and deflated, has bytes before its first entry or after its end record, or
/// exceeds the limits. Memory: a small multiple of the size of the directory, which is inside the file.
class ZipReader {
 public:
  static constexpr std::uint64_t kInflateLimit = std::uint64_t{256} << 20;

  explicit ZipReader(std::shared_ptr<const ByteSource> file, const ZipLimits& limits = {});

  /// The comment of the archive.
  const std::string& comment() const { return comment_; }
  /// The entries in the order of the directory.
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// The entry of that name, or nullptr.
  const ZipEntry* find(std::string_view name) const;
  /// The offset in the file of the first byte of an entry.
  std::uint64_t payload_offset(const ZipEntry& entry) const;
  /// The bytes of an entry of this archive. If it is stored, they are a part of the file (without a CRC
  /// check); else they are inflated into memory and checked. Throws FormatError for more than `inflate_limit`
  /// bytes.
  std::shared_ptr<const ByteSource> open(const ZipEntry& entry,
                                         std::uint64_t inflate_limit = kInflateLimit) const;
  /// Lists data besides the entries that neither the format nor PyTorch's padding prescribes: comments, bytes
  /// between entries, fields that no writer of models adds. Empty without such data.
  std::string surplus() const;
  /// Passes on the unpacked bytes of an entry of this archive from front to back, in pieces. Throws
  /// FormatError if they are not as the directory says, perhaps only after all of them.
  void stream(const ZipEntry& entry, const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  [[noreturn]] void fail(const std::string& reason) const;
  [[noreturn]] void fail(const ZipEntry& entry, const std::string& reason) const;
  struct Directory {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t count = 0;
  };
  Directory locate_directory();
  void parse_directory(const Directory& directory);
  void check_entry(const ZipEntry& entry) const;
  bool is_descriptor(const ZipEntry& entry, std::uint64_t offset, std::uint64_t size) const;
  void index_names(bool allow_twins);
  void index_offsets(std::uint64_t directory_offset);

  std::shared_ptr<const ByteSource> file_;
  std::string comment_;
  std::string directory_surplus_;  // in the records of the directory
  std::vector<ZipEntry> entries_;
  std::vector<std::uint32_t> by_name_;
  std::vector<std::uint64_t> boundaries_;  // sorted header offsets, then the offset of the directory
};

}  // namespace msprobe::archive
