// SPDX-License-Identifier: Apache-2.0
// Reads entries from front to back; they may be far larger than memory.
#include <zlib.h>

#include <algorithm>
#include <new>
#include <vector>

#include "archive/zip_reader.hpp"
#include "support/crc32.hpp"

namespace msprobe::archive {
namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10;

class RawInflate {
 public:
  RawInflate() {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~RawInflate() { inflateEnd(&stream); }
  RawInflate(const RawInflate&) = delete;
  RawInflate& operator=(const RawInflate&) = delete;

  z_stream stream{};
};

}  // namespace

void ZipReader::stream(const ZipEntry& entry,
                       const std::function<void(std::span<const std::byte>)>& take) const {
  const auto raw = slice_source(file_, payload_offset(entry), entry.compressed_size);
  std::vector<std::byte> in(kChunk);
  std::vector<std::byte> out(kChunk);
  std::uint64_t position = 0;
  std::uint64_t given = 0;
  std::uint32_t crc = 0;
  const auto give = [&](std::span<const std::byte> bytes) {
    given += bytes.size();
    if (given > entry.size) fail(entry, "broken: its compressed data is damaged");
    crc = crc32(crc, bytes);
    take(bytes);
  };
  const auto next = [&] {
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, entry.compressed_size - position));
    raw->read_at(position, std::span(in).first(length));
    position += length;
    return length;
  };
  if (entry.method == ZipMethod::stored) {
    while (position < entry.compressed_size) give(std::span(in).first(next()));
  } else {
    RawInflate inflater;
    z_stream& z = inflater.stream;
    for (int status = Z_OK; status != Z_STREAM_END;) {
      if (status != Z_OK) fail(entry, "broken: its compressed data is damaged");
      if (z.avail_in == 0 && position < entry.compressed_size) {
        z.avail_in = static_cast<uInt>(next());
        z.next_in = reinterpret_cast<Bytef*>(in.data());
      }
      z.next_out = reinterpret_cast<Bytef*>(out.data());
      z.avail_out = static_cast<uInt>(out.size());
      // If inflate() can neither read nor write, it returns Z_BUF_ERROR: the data ends too early.
      status = inflate(&z, Z_NO_FLUSH);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      give(std::span(out).first(out.size() - z.avail_out));
    }
    if (z.avail_in != 0 || position != entry.compressed_size || given != entry.size)
      fail(entry, "broken: its compressed data is damaged");
  }
  if (crc != entry.crc32) fail(entry, "broken: its checksum does not match");
}

}  // namespace msprobe::archive
