// SPDX-License-Identifier: Apache-2.0
#include "archive/zip_writer.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "archive/zip_format.hpp"
#include "support/crc32.hpp"
#include "support/little_endian.hpp"

namespace msprobe::archive {
namespace {

constexpr std::uint16_t kUtf8Names = 0x0800;
constexpr std::uint16_t kPaddingExtra = 0x4246;  // "FB", PyTorch's own
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kExtraHeader = 4;
constexpr std::uint64_t kCrcPosition = 14;  // in a local header

std::uint32_t capped(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, kMax32));
}

std::uint64_t mix(std::uint64_t hash, std::uint8_t byte) {
  return (hash ^ byte) * 0x100000001b3u;
}
constexpr std::uint64_t kHashStart = 0xcbf29ce484222325u;

}  // namespace

bool ZipWriter::Entry::wide() const {
  return size >= kMax32 || packed_size >= kMax32;
}

// From "version needed" to the uncompressed size, in both kinds of headers.
std::string ZipWriter::fixed_fields(const Entry& entry, bool local) const {
  const bool plain = style_ != ZipStyle::torch;
  const bool hidden = local && !plain;  // checksum and sizes come behind the payload
  std::string out;
  append_le<std::uint16_t>(out, !plain ? 0 : entry.wide() ? 45 : 20);
  // PyTorch lets nothing follow an entry without bytes.
  append_le<std::uint16_t>(out, plain || entry.size == 0 ? kUtf8Names : kUtf8Names | kSizesFollow);
  append_le<std::uint16_t>(out, entry.deflated ? 8 : 0);
  append_le<std::uint16_t>(out, 0);                 // time
  append_le<std::uint16_t>(out, plain ? 0x21 : 0);  // 1980-01-01, or no date at all
  append_le<std::uint32_t>(out, hidden ? 0 : entry.crc);
  const auto size = [&](std::uint64_t value) { return hidden && !entry.wide() ? 0 : capped(value); };
  append_le<std::uint32_t>(out, size(entry.stored_size()));
  append_le<std::uint32_t>(out, size(entry.size));
  return out;
}

void ZipWriter::begin(std::string name, std::uint64_t size) {
  if (open_) throw std::logic_error("an entry of a zip archive was not ended");
  if (name.size() > std::numeric_limits<std::uint16_t>::max())
    throw std::logic_error("a name in a zip archive is too long");
  const Entry& entry = entries_.emplace_back(Entry{std::move(name), file_.size(), size});
  std::string extra;
  if (entry.wide()) {
    append_le(extra, kZip64Extra);
    append_le<std::uint16_t>(extra, 16);
    append_le(extra, size);
    append_le(extra, size);
  }
  if (style_ == ZipStyle::torch) {
    const std::uint64_t before = entry.offset + kLocalSize + entry.name.size() + extra.size() + kExtraHeader;
    const std::uint64_t padding = (kAlignment - before % kAlignment) % kAlignment;
    append_le(extra, kPaddingExtra);
    append_le(extra, static_cast<std::uint16_t>(padding));
    extra.append(static_cast<std::size_t>(padding), 'Z');
  }
  std::string header = "PK\x03\x04" + fixed_fields(entry, true);
  append_le(header, static_cast<std::uint16_t>(entry.name.size()));
  append_le(header, static_cast<std::uint16_t>(extra.size()));
  file_.write(header + entry.name + extra);
  written_ = 0;
  open_ = true;
}

void ZipWriter::write(std::span<const std::byte> bytes) {
  Entry& entry = entries_.back();
  if (!open_ || bytes.size() > entry.size - written_)
    throw std::logic_error("an entry of a zip archive grows beyond its size");
  entry.crc = crc32(entry.crc, bytes);
  file_.write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  written_ += bytes.size();
}

void ZipWriter::end() {
  const Entry& entry = entries_.back();
  if (!open_ || written_ != entry.size) throw std::logic_error("an entry of a zip archive is incomplete");
  open_ = false;
  std::string out;
  if (style_ != ZipStyle::torch) {
    append_le(out, entry.crc);
    file_.write_at(entry.offset + kCrcPosition, out);
    return;
  }
  if (entry.size == 0) return;
  out = "PK\x07\x08";
  append_le(out, entry.crc);
  for (int i = 0; i < 2; ++i) {
    if (entry.wide()) {
      append_le(out, entry.size);
    } else {
      append_le(out, static_cast<std::uint32_t>(entry.size));
    }
  }
  file_.write(out);
}

void ZipWriter::add(std::string name, std::string_view contents) {
  begin(std::move(name), contents.size());
  write(contents);
  end();
}

void ZipWriter::add_deflated(std::string name, std::string_view contents) {
  if (open_) throw std::logic_error("an entry of a zip archive was not ended");
  if (style_ == ZipStyle::torch || contents.size() >= kMax32)
    throw std::logic_error("an entry of a zip archive is not to be compressed");
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string packed(deflateBound(&stream, static_cast<uLong>(contents.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (!whole) throw std::runtime_error("zlib did not compress an entry");

  Entry entry{std::move(name), file_.size(), contents.size()};
  if (entry.name.size() > std::numeric_limits<std::uint16_t>::max())
    throw std::logic_error("a name in a zip archive is too long");
  entry.crc = static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size()));
  entry.packed_size = packed.size();
  entry.deflated = true;
  std::string header = "PK\x03\x04" + fixed_fields(entry, true);
  append_le(header, static_cast<std::uint16_t>(entry.name.size()));
  append_le<std::uint16_t>(header, 0);
  file_.write(header + entry.name);
  file_.write(packed);
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  if (open_) throw std::logic_error("an entry of a zip archive was not ended");
  const std::uint64_t start = file_.size();
  for (const Entry& entry : entries_) {
    std::string values;
    if (entry.wide()) {
      append_le(values, entry.size);
      append_le(values, entry.stored_size());
    }
    if (entry.offset >= kMax32) append_le(values, entry.offset);
    std::string record = "PK\x01\x02";
    // Made by version 4.5, and for a mode on Unix.
    append_le<std::uint16_t>(record, style_ == ZipStyle::plain    ? 45
                                     : style_ == ZipStyle::secret ? 45 | 3 << 8
                                                                  : 0);
    record += fixed_fields(entry, false);
    append_le(record, static_cast<std::uint16_t>(entry.name.size()));
    append_le(record, static_cast<std::uint16_t>(values.empty() ? 0 : values.size() + kExtraHeader));
    record.append(6, '\0');  // comment, disk, internal attributes
    append_le<std::uint32_t>(record, style_ == ZipStyle::secret ? 0600u << 16 : 0);
    append_le(record, capped(entry.offset));
    record += entry.name;
    if (!values.empty()) {
      append_le(record, kZip64Extra);
      append_le(record, static_cast<std::uint16_t>(values.size()));
      record += values;
    }
    file_.write(record);
  }
  const std::uint64_t end = file_.size();
  const std::uint64_t count = entries_.size();
  const auto short_count = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xffff));
  std::string out;
  if (style_ == ZipStyle::torch || start >= kMax32 || end - start >= kMax32 || count >= 0xffff) {
    const std::uint16_t made_by =
        style_ == ZipStyle::torch ? 798 : 45;  // Unix, version 3.0 as PyTorch has it
    out = "PK\x06\x06";
    append_le<std::uint64_t>(out, 44);
    append_le(out, made_by);
    append_le<std::uint16_t>(out, 45);
    append_le<std::uint64_t>(out, 0);  // disks
    append_le(out, count);
    append_le(out, count);
    append_le(out, end - start);
    append_le(out, start);
    out += "PK\x06\x07";
    append_le<std::uint32_t>(out, 0);
    append_le(out, end);
    append_le<std::uint32_t>(out, 1);
  }
  out += "PK\x05\x06";
  append_le<std::uint32_t>(out, 0);
  append_le(out, short_count);
  append_le(out, short_count);
  append_le(out, capped(end - start));
  append_le(out, capped(start));
  append_le<std::uint16_t>(out, 0);
  file_.write(out);
}

std::uint64_t ZipWriter::hash_of_names() const {
  std::uint64_t hash = kHashStart;
  for (const Entry& entry : entries_) {
    for (const char c : entry.name) hash = mix(hash, static_cast<std::uint8_t>(c));
    hash = mix(hash, 0);
  }
  return hash;
}

std::uint64_t ZipWriter::hash_of_contents() const {
  std::uint64_t hash = kHashStart;
  for (const Entry& entry : entries_) {
    for (int shift = 0; shift < 32; shift += 8)
      hash = mix(hash, static_cast<std::uint8_t>(entry.crc >> shift));
  }
  return hash;
}

}  // namespace msprobe::archive
