// SPDX-License-Identifier: Apache-2.0
// A zip archive in the making, just as much as a workbook needs: deflated entries whose blocks were
// compressed elsewhere, on several threads. The bytes depend on the contents alone; every entry has the date
// 1980-01-01.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/output_file.hpp"

namespace msprobe::report {

/// A piece of an entry, ready to be put behind the piece before.
struct DeflatedBlock {
  std::string bytes;           // ends at a byte boundary and is not the last deflate block
  std::uint64_t raw_size = 0;  // before compression
  std::uint32_t crc = 0;       // of the raw bytes
};

/// Compresses `raw` into `block`, whose memory is used again.
void deflate_block(std::string_view raw, DeflatedBlock& block);

class ZipOutput {
 public:
  explicit ZipOutput(OutputFile& file) : file_(file) {}
  void begin_entry(std::string name);
  void append(const DeflatedBlock& block);
  void end_entry();
  /// A whole entry at once.
  void add(std::string name, std::string_view contents);
  /// Writes the directory; nothing may follow.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t raw_size = 0;
    std::uint32_t crc = 0;
  };
  OutputFile& file_;
  std::vector<Entry> entries_;
};

}  // namespace msprobe::report
