// SPDX-License-Identifier: Apache-2.0
#include "report/zip_output.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

namespace msprobe::report {
namespace {

// A workbook is mostly repeated names: the usual level 6 takes more than twice the time for a tenth less.
constexpr int kLevel = 2;
constexpr std::uint32_t kLimit32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint16_t kDeflated = 8;
constexpr std::uint16_t kDate = (1 << 5) | 1;  // 1980-01-01
constexpr std::uint16_t kZip64Extra = 0x0001;
// Registered for the same purpose: room in the local header that Zip64 sizes can take later.
constexpr std::uint16_t kGrowthHintExtra = 0xA220;
constexpr std::uint16_t kExtraSize = 16;

class Fields {
 public:
  Fields& u16(std::uint64_t value) { return put(value, 2); }
  Fields& u32(std::uint64_t value) { return put(value, 4); }
  Fields& u64(std::uint64_t value) { return put(value, 8); }
  Fields& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Fields& put(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>((value >> (8 * i)) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

std::uint32_t capped(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, kLimit32));
}

/// What local and central header share, from "version needed" to the length of the name.
void put_common(Fields& out, bool zip64, std::uint32_t crc, std::uint64_t size, std::uint64_t raw_size,
                std::size_t name_size) {
  out.u16(zip64 ? 45 : 20).u16(0).u16(kDeflated).u16(0).u16(kDate).u32(crc);
  out.u32(zip64 ? kLimit32 : size).u32(zip64 ? kLimit32 : raw_size).u16(name_size);
}

bool needs_zip64(std::uint64_t size, std::uint64_t raw_size) {
  return size >= kLimit32 || raw_size >= kLimit32;
}

std::string local_header(const std::string& name, std::uint32_t crc, std::uint64_t size,
                         std::uint64_t raw_size) {
  const bool zip64 = needs_zip64(size, raw_size);
  Fields out;
  out.u32(0x04034B50);
  put_common(out, zip64, crc, size, raw_size, name.size());
  out.u16(4 + kExtraSize).text(name);
  if (zip64) {
    out.u16(kZip64Extra).u16(kExtraSize).u64(raw_size).u64(size);
  } else {
    out.u16(kGrowthHintExtra).u16(kExtraSize).u16(0xA028).u16(kExtraSize - 4).u64(0).u32(0);
  }
  return out.bytes();
}

}  // namespace

void deflate_block(std::string_view raw, DeflatedBlock& block) {
  z_stream stream{};
  if (raw.size() > std::numeric_limits<uInt>::max() / 2)
    throw std::length_error("a block of a zip entry is too large");
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  block.bytes.resize(deflateBound(&stream, static_cast<uLong>(raw.size())) + 16);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data()));
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = reinterpret_cast<Bytef*>(block.bytes.data());
  stream.avail_out = static_cast<uInt>(block.bytes.size());
  const int status = deflate(&stream, Z_SYNC_FLUSH);
  const bool whole = status == Z_OK && stream.avail_in == 0 && stream.avail_out != 0;
  block.bytes.resize(stream.total_out);
  deflateEnd(&stream);
  if (!whole) throw std::runtime_error("zlib did not compress a block");
  block.raw_size = raw.size();
  block.crc =
      static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(raw.data()), raw.size()));
}

void ZipOutput::begin_entry(std::string name) {
  entries_.push_back({.name = std::move(name), .offset = file_.size()});
  file_.write(local_header(entries_.back().name, 0, 0, 0));  // the real one follows in end_entry()
}

void ZipOutput::append(const DeflatedBlock& block) {
  Entry& entry = entries_.back();
  file_.write(block.bytes);
  entry.crc =
      static_cast<std::uint32_t>(::crc32_combine(entry.crc, block.crc, static_cast<z_off_t>(block.raw_size)));
  entry.size += block.bytes.size();
  entry.raw_size += block.raw_size;
}

void ZipOutput::end_entry() {
  constexpr std::string_view kLastBlock("\x03\x00",
                                        2);  // an empty deflate block with the mark of the last one
  Entry& entry = entries_.back();
  file_.write(kLastBlock);
  entry.size += kLastBlock.size();
  file_.write_at(entry.offset, local_header(entry.name, entry.crc, entry.size, entry.raw_size));
}

void ZipOutput::add(std::string name, std::string_view contents) {
  begin_entry(std::move(name));
  DeflatedBlock block;
  deflate_block(contents, block);
  append(block);
  end_entry();
}

void ZipOutput::finish() {
  const std::uint64_t start = file_.size();
  for (const Entry& entry : entries_) {
    const bool sizes64 = needs_zip64(entry.size, entry.raw_size);
    const bool offset64 = entry.offset >= kLimit32;
    Fields extra;
    if (sizes64) extra.u64(entry.raw_size).u64(entry.size);
    if (offset64) extra.u64(entry.offset);
    Fields out;
    out.u32(0x02014B50).u16(45);
    put_common(out, sizes64, entry.crc, entry.size, entry.raw_size, entry.name.size());
    out.u16(extra.bytes().empty() ? 0 : 4 + extra.bytes().size());
    out.u16(0).u16(0).u16(0).u32(0).u32(capped(entry.offset)).text(entry.name);
    if (!extra.bytes().empty()) out.u16(kZip64Extra).u16(extra.bytes().size()).text(extra.bytes());
    file_.write(out.bytes());
  }
  const std::uint64_t end = file_.size();
  Fields out;
  if (start >= kLimit32 || entries_.size() >= 0xFFFF) {
    out.u32(0x06064B50).u64(44).u16(45).u16(45).u32(0).u32(0);
    out.u64(entries_.size()).u64(entries_.size()).u64(end - start).u64(start);
    out.u32(0x07064B50).u32(0).u64(end).u32(1);
  }
  const std::size_t count = std::min<std::size_t>(entries_.size(), 0xFFFF);
  out.u32(0x06054B50).u16(0).u16(0).u16(count).u16(count).u32(end - start).u32(capped(start)).u16(0);
  file_.write(out.bytes());
}

}  // namespace msprobe::report
