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
constexpr std::uint16_t kPaddingExtra = 0x4246;     // "FB", PyTorch's padding
constexpr std::uint16_t kGrowthHintExtra = 0xA220;  // registered for space that Zip64 sizes can take later
constexpr std::uint16_t kGrowthHintMark = 0xA028;
constexpr std::uint16_t kZip64Size = 16;
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

bool ZipWriter::WrittenEntry::wide() const {
  return size >= kMax32 || packed_size >= kMax32;
}

// The fields from "version needed" to the uncompressed size, in both kinds of headers.
std::string ZipWriter::fixed_fields(const WrittenEntry& entry, bool local) const {
  const bool torch = style_ == ZipStyle::torch;
  const bool hidden = local && torch;  // checksum and sizes follow the payload
  std::uint16_t flags = style_ == ZipStyle::workbook ? 0 : kUtf8Names;
  if (torch && entry.size != 0) flags |= kSizesFollow;  // PyTorch writes nothing after an entry without bytes
  std::string out;
  append_le<std::uint16_t>(out, torch ? 0 : entry.wide() ? 45 : 20);
  append_le(out, flags);
  append_le<std::uint16_t>(out, entry.deflated ? 8 : 0);
  append_le<std::uint16_t>(out, 0);                 // time
  append_le<std::uint16_t>(out, torch ? 0 : 0x21);  // no date at all, or 1980-01-01
  append_le<std::uint32_t>(out, hidden ? 0 : entry.crc);
  const auto size = [&](std::uint64_t value) { return entry.wide() ? kMax32 : hidden ? 0 : capped(value); };
  append_le<std::uint32_t>(out, size(entry.stored_size()));
  append_le<std::uint32_t>(out, size(entry.size));
  return out;
}

std::string ZipWriter::local_header(const WrittenEntry& entry) const {
  std::string extra;
  if (entry.wide()) {
    append_le(extra, kZip64Extra);
    append_le(extra, kZip64Size);
    append_le(extra, entry.size);
    append_le(extra, entry.stored_size());
  } else if (style_ == ZipStyle::workbook) {
    append_le(extra, kGrowthHintExtra);
    append_le(extra, kZip64Size);
    append_le(extra, kGrowthHintMark);
    append_le<std::uint16_t>(extra, kZip64Size - 4);
    extra.append(kZip64Size - 4, '\0');
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
  return header + entry.name + extra;
}

ZipWriter::WrittenEntry& ZipWriter::new_entry(std::string name) {
  if (open_) throw std::logic_error("an entry of a zip archive was not ended");
  if (name.size() > std::numeric_limits<std::uint16_t>::max())
    throw std::logic_error("a name in a zip archive is too long");
  return entries_.emplace_back(WrittenEntry{std::move(name), file_.size()});
}

void ZipWriter::begin(std::string name, std::uint64_t size, std::optional<std::uint32_t> crc) {
  WrittenEntry& entry = new_entry(std::move(name));
  entry.size = size;
  entry.summed = crc.has_value();
  entry.crc = crc.value_or(0);
  file_.write(local_header(entry));
  written_ = 0;
  open_ = true;
}

void ZipWriter::begin_blocks(std::string name) {
  if (style_ != ZipStyle::workbook)
    throw std::logic_error("an entry of a zip archive is not to be in blocks");
  WrittenEntry& entry = new_entry(std::move(name));
  entry.deflated = true;
  file_.write(local_header(entry));  // end() writes the final one
  open_ = true;
}

void ZipWriter::append(const DeflatedBlock& block) {
  if (!open_ || !entries_.back().deflated)
    throw std::logic_error("an entry of a zip archive takes no blocks");
  WrittenEntry& entry = entries_.back();
  file_.write(block.bytes);
  entry.crc =
      static_cast<std::uint32_t>(::crc32_combine(entry.crc, block.crc, static_cast<z_off_t>(block.raw_size)));
  entry.packed_size += block.bytes.size();
  entry.size += block.raw_size;
}

void ZipWriter::write(std::span<const std::byte> bytes) {
  WrittenEntry& entry = entries_.back();
  if (!open_ || entry.deflated || bytes.size() > entry.size - written_)
    throw std::logic_error("an entry of a zip archive grows beyond its size");
  if (!entry.summed) entry.crc = crc32(entry.crc, bytes);
  file_.write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  written_ += bytes.size();
}

void ZipWriter::end() {
  WrittenEntry& entry = entries_.back();
  if (open_ && entry.deflated) {
    file_.write(kLastDeflateBlock);
    entry.packed_size += kLastDeflateBlock.size();
    file_.write_at(entry.offset, local_header(entry));
    open_ = false;
    return;
  }
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
  if (style_ != ZipStyle::plain && style_ != ZipStyle::secret)
    throw std::logic_error("an entry of a zip archive is not to be compressed");
  const std::string packed = deflate_whole(contents);
  WrittenEntry& entry = new_entry(std::move(name));
  entry.size = contents.size();
  entry.crc = crc32(0, std::as_bytes(std::span(contents)));
  entry.packed_size = packed.size();
  entry.deflated = true;
  file_.write(local_header(entry));
  file_.write(packed);
}

void ZipWriter::finish(std::string_view comment) {
  if (open_) throw std::logic_error("an entry of a zip archive was not ended");
  const std::uint64_t start = file_.size();
  for (const WrittenEntry& entry : entries_) {
    std::string values;
    if (entry.wide()) {
      append_le(values, entry.size);
      append_le(values, entry.stored_size());
    }
    if (entry.offset >= kMax32) append_le(values, entry.offset);
    std::string record = "PK\x01\x02";
    // Version 4.5; for a file mode, made on Unix.
    append_le<std::uint16_t>(record, style_ == ZipStyle::torch    ? 0
                                     : style_ == ZipStyle::secret ? 45 | 3 << 8
                                                                  : 45);
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
        style_ == ZipStyle::torch ? 798 : 45;  // Unix, version 3.0, as PyTorch writes
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
  append_le(out, static_cast<std::uint16_t>(comment.size()));
  out += comment;
  file_.write(out);
}

std::uint64_t ZipWriter::hash_of_names() const {
  std::uint64_t hash = kHashStart;
  for (const WrittenEntry& entry : entries_) {
    for (const char c : entry.name) hash = mix(hash, static_cast<std::uint8_t>(c));
    hash = mix(hash, 0);
  }
  return hash;
}

std::uint64_t ZipWriter::hash_of_contents() const {
  std::uint64_t hash = kHashStart;
  for (const WrittenEntry& entry : entries_) {
    for (int shift = 0; shift < 32; shift += 8)
      hash = mix(hash, static_cast<std::uint8_t>(entry.crc >> shift));
  }
  return hash;
}

}  // namespace msprobe::archive
