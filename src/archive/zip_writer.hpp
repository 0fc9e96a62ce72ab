// SPDX-License-Identifier: Apache-2.0
// Writes a zip archive. Entries are stored, so that tensors in it can be read in place, unless a compressed
// one is requested. The bytes depend only on the contents: no time, no user name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/deflate.hpp"
#include "support/output_file.hpp"

namespace msprobe::archive {

enum class ZipStyle : std::uint8_t {
  plain,     // sizes and checksum in the local header: any program can read it
  torch,     // as PyTorch writes: payloads at multiples of 64, then sizes, always a Zip64 end record
  secret,    // as plain, but unpacked only for its owner (mode 0600)
  workbook,  // as plain, with space in the local header for sizes that are known late
};

class ZipWriter {
 public:
  ZipWriter(OutputFile& file, ZipStyle style) : file_(file), style_(style) {}

  /// Starts an entry of exactly `size` bytes. If `crc` is given, the checksum is not computed. Throws
  /// std::logic_error if the entry before is not complete.
  void begin(std::string name, std::uint64_t size, std::optional<std::uint32_t> crc = std::nullopt);
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Starts an entry of blocks that were compressed elsewhere. Only for ZipStyle::workbook.
  void begin_blocks(std::string name);
  void append(const DeflatedBlock& block);
  void end();
  /// Writes a whole entry at once.
  void add(std::string name, std::string_view contents);
  /// Writes a whole entry at once, compressed. For ZipStyle::plain and secret.
  void add_deflated(std::string name, std::string_view contents);
  /// Writes the directory, and the comment of the archive, which has less than 64 KiB; nothing may follow.
  void finish(std::string_view comment = {});

  /// A hash of the names of all entries, and a hash of their contents.
  std::uint64_t hash_of_names() const;
  std::uint64_t hash_of_contents() const;

 private:
  struct WrittenEntry {
    std::string name;
    std::uint64_t offset = 0;  // of the local header
    std::uint64_t size = 0;
    std::uint32_t crc = 0;
    std::uint64_t packed_size = 0;  // of a compressed entry
    bool deflated = false;
    bool summed = false;  // the caller gave the checksum
    std::uint64_t stored_size() const { return deflated ? packed_size : size; }
    bool wide() const;
  };
  WrittenEntry& new_entry(std::string name);
  std::string fixed_fields(const WrittenEntry& entry, bool local) const;
  std::string local_header(const WrittenEntry& entry) const;

  OutputFile& file_;
  ZipStyle style_;
  std::vector<WrittenEntry> entries_;
  std::uint64_t written_ = 0;  // of the current entry, if it is stored
  bool open_ = false;
};

}  // namespace msprobe::archive
