// SPDX-License-Identifier: Apache-2.0
// Zip archives built byte by byte, so that a test can falsify any field.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::archive {

/// Little-endian integers and text, appended.
class Bytes {
 public:
  Bytes& u16(std::uint64_t value) { return number(value, 2); }
  Bytes& u32(std::uint64_t value) { return number(value, 4); }
  Bytes& u64(std::uint64_t value) { return number(value, 8); }
  Bytes& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  Bytes& number(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>((value >> (8 * i)) & 0xffU);
    return *this;
  }
  std::string bytes_;
};

/// A raw deflate stream of the text.
inline std::string deflated(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::uint32_t crc_of(std::string_view text) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

/// One entry; whatever is not set is filled in truthfully.
struct Piece {
  std::string name;
  std::string payload = {};  // as in the archive
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::optional<std::uint64_t> size = {};             // unpacked
  std::optional<std::uint64_t> compressed_size = {};  // in the directory
  std::optional<std::uint32_t> crc = {};
  std::optional<std::uint64_t> header_offset = {};
  std::optional<std::string> local_name = {};
  std::optional<std::uint16_t> local_method = {};
  std::optional<std::uint32_t> local_size = {};
  std::string local_extra = {};
  std::string central_extra = {};
  std::uint16_t disk = 0;
  std::uint32_t attributes = 0;
};

struct Ending {
  std::optional<std::uint64_t> count = {};
  std::optional<std::uint64_t> directory_size = {};
  std::optional<std::uint64_t> directory_offset = {};
  std::uint16_t disk = 0;
  bool zip64 = false;
  std::string comment = {};
  std::string prefix = {};  // before the first entry
};

inline std::string build_zip(const std::vector<Piece>& pieces, const Ending& ending = {}) {
  Bytes file;
  Bytes directory;
  file.text(ending.prefix);
  for (const Piece& piece : pieces) {
    const bool descriptor = (piece.flags & 8U) != 0;
    const std::uint64_t size = piece.size.value_or(piece.payload.size());
    const std::uint64_t compressed = piece.compressed_size.value_or(piece.payload.size());
    const std::uint32_t crc = piece.crc.value_or(crc_of(piece.payload));
    const std::uint64_t offset = piece.header_offset.value_or(file.str().size());
    const std::string local_name = piece.local_name.value_or(piece.name);
    file.u32(0x04034b50).u16(20).u16(piece.flags).u16(piece.local_method.value_or(piece.method)).u32(0);
    file.u32(descriptor ? 0 : crc).u32(descriptor ? 0 : compressed);
    file.u32(piece.local_size.value_or(static_cast<std::uint32_t>(descriptor ? 0 : size)));
    file.u16(local_name.size()).u16(piece.local_extra.size()).text(local_name).text(piece.local_extra);
    file.text(piece.payload);
    if (descriptor) file.u32(0x08074b50).u32(crc).u32(compressed).u32(size);
    directory.u32(0x02014b50).u16(20).u16(20).u16(piece.flags).u16(piece.method).u32(0).u32(crc);
    directory.u32(compressed).u32(size).u16(piece.name.size()).u16(piece.central_extra.size()).u16(0);
    directory.u16(piece.disk)
        .u16(0)
        .u32(piece.attributes)
        .u32(offset)
        .text(piece.name)
        .text(piece.central_extra);
  }
  const std::uint64_t count = ending.count.value_or(pieces.size());
  const std::uint64_t directory_size = ending.directory_size.value_or(directory.str().size());
  const std::uint64_t directory_offset = ending.directory_offset.value_or(file.str().size());
  file.text(directory.str());
  if (ending.zip64) {
    const std::uint64_t end64 = file.str().size();
    file.u32(0x06064b50).u64(44).u16(45).u16(45).u32(0).u32(0).u64(count).u64(count);
    file.u64(directory_size).u64(directory_offset);
    file.u32(0x07064b50).u32(0).u64(end64).u32(1);
  }
  const bool wide = ending.zip64;
  file.u32(0x06054b50).u16(ending.disk).u16(0).u16(wide ? 0xffff : count).u16(wide ? 0xffff : count);
  file.u32(wide ? 0xffffffff : directory_size).u32(wide ? 0xffffffff : directory_offset);
  file.u16(ending.comment.size()).text(ending.comment);
  return file.str();
}

}  // namespace msprobe::archive
