// SPDX-License-Identifier: Apache-2.0
#include "archive/deflate.hpp"

#include <zlib.h>

#include <limits>
#include <new>
#include <span>
#include <stdexcept>

#include "support/crc32.hpp"

namespace msprobe::archive {
namespace {

// A result is mostly repeated names: the usual level 6 takes more than twice as long for a tenth less.
constexpr int kQuickLevel = 2;
constexpr std::size_t kFlushRoom = 16;  // a flush may need this beyond deflateBound()

void deflate_into(std::string& out, std::string_view raw, int level, bool last) {
  z_stream stream{};
  if (raw.size() > std::numeric_limits<uInt>::max() / 2)
    throw std::length_error("too much to compress at once");
  if (deflateInit2(&stream, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  out.resize(deflateBound(&stream, static_cast<uLong>(raw.size())) + kFlushRoom);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data()));
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, last ? Z_FINISH : Z_SYNC_FLUSH);
  const bool whole = status == (last ? Z_STREAM_END : Z_OK) && stream.avail_in == 0 && stream.avail_out != 0;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (!whole) throw std::runtime_error("zlib did not compress everything");
}

}  // namespace

void deflate_block(std::string_view raw, DeflatedBlock& block) {
  deflate_into(block.bytes, raw, kQuickLevel, false);
  block.raw_size = raw.size();
  block.crc = crc32(0, std::as_bytes(std::span(raw)));
}

std::string deflate_whole(std::string_view raw) {
  std::string out;
  deflate_into(out, raw, Z_DEFAULT_COMPRESSION, true);
  return out;
}

}  // namespace msprobe::archive
