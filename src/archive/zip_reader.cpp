// SPDX-License-Identifier: Apache-2.0
#include "archive/zip_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "archive/zip_format.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::archive {
namespace {

constexpr std::uint16_t kEncrypted = 1U << 0;
constexpr std::uint16_t kPatched = 1U << 5;
constexpr std::uint16_t kStrongEncryption = 1U << 6;
constexpr std::uint16_t kMaskedHeaders = 1U << 13;
constexpr std::uint16_t kRefusedFlags = kEncrypted | kPatched | kStrongEncryption | kMaskedHeaders;

// Deflate's largest ratio: 258 bytes from 2 bits.
constexpr std::uint64_t kMaxRatio = 1032;

bool inside(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return offset <= size && length <= size - offset;
}

// The part of an extra field with the given id; nothing if it is missing or the field is malformed.
std::optional<std::span<const std::byte>> find_extra(std::span<const std::byte> extra, std::uint16_t id) {
  while (extra.size() >= 4) {
    const auto length = load_le<std::uint16_t>(extra.data() + 2);
    if (extra.size() - 4 < length) return {};
    if (load_le<std::uint16_t>(extra.data()) == id) return extra.subspan(4, length);
    extra = extra.subspan(4 + std::size_t{length});
  }
  return {};
}

/// True if an extra field holds only sizes, times, owners, and PyTorch's padding of one letter.
bool is_ordinary_extra(std::span<const std::byte> extra) {
  constexpr std::uint16_t kTimes = 0x5455;    // Info-ZIP's
  constexpr std::uint16_t kOwners = 0x7875;   // Info-ZIP's
  constexpr std::uint16_t kPadding = 0x4246;  // "FB", PyTorch's
  while (extra.size() >= 4) {
    const auto id = load_le<std::uint16_t>(extra.data());
    const std::size_t length = load_le<std::uint16_t>(extra.data() + 2);
    if (length > extra.size() - 4) return false;
    const auto content = extra.subspan(4, length);
    const bool padding =
        id == kPadding && (std::ranges::all_of(content, [](std::byte b) { return b == std::byte{'Z'}; }) ||
                           std::ranges::all_of(content, [](std::byte b) { return b == std::byte{0}; }));
    if (!padding && id != kZip64Extra && id != kTimes && id != kOwners) return false;
    if (!padding && length > 32) return false;
    extra = extra.subspan(4 + length);
  }
  return extra.empty();
}

// Reads the 64-bit values that replace saturated 32-bit fields, in the order that the format prescribes.
class Zip64Values {
 public:
  explicit Zip64Values(std::span<const std::byte> extra) : values_(find_extra(extra, kZip64Extra)) {}

  // Returns false if the field is saturated and its replacement is missing.
  bool widen(std::uint64_t& field) {
    if (field != kMax32) return true;
    if (!values_ || values_->size() < 8) return false;
    field = load_le<std::uint64_t>(values_->data());
    values_ = values_->subspan(8);
    return true;
  }

 private:
  std::optional<std::span<const std::byte>> values_;
};

}  // namespace

ZipReader::ZipReader(std::shared_ptr<const ByteSource> file, const ZipLimits& limits)
    : file_(std::move(file)) {
  const Directory directory = locate_directory();
  if (directory.count > limits.max_entries) fail(fmt::format("too many entries: {}", directory.count));
  // Every entry takes a local header and a directory record; a count above that is wrong and would cost
  // memory.
  if (directory.count > directory.size / kCentralSize || directory.count > directory.offset / kLocalSize) {
    fail("broken zip archive: more entries than the file has room for");
  }
  if (directory.size > limits.max_directory)
    fail(fmt::format("refused: a zip directory of {} bytes", directory.size));
  parse_directory(directory);
  index_names(limits.allow_twins);
  index_offsets(directory.offset);
}

void ZipReader::fail(const std::string& reason) const {
  throw FormatError(display(file_->name()), reason);
}

void ZipReader::fail(const ZipEntry& entry, const std::string& reason) const {
  fail(fmt::format("zip entry {}: {}", display(entry.name), reason));
}

ZipReader::Directory ZipReader::locate_directory() {
  const std::uint64_t size = file_->size();
  if (size < kEndSize) fail("not a zip archive, or truncated: no end record");
  // The end record is last, followed only by a comment of at most 64 KiB. Archives rarely have one, so the
  // search starts near the end.
  std::vector<std::byte> tail;
  std::uint64_t tail_offset = 0;
  std::optional<std::size_t> found;
  for (const std::uint64_t reach : {kEndSize, kEndSize + kLongestComment}) {
    tail.resize(static_cast<std::size_t>(std::min(size, reach)));
    tail_offset = size - tail.size();
    file_->read_at(tail_offset, tail);
    for (std::size_t i = tail.size() - kEndSize + 1; i-- > 0 && !found;) {
      const bool matches = load_le<std::uint32_t>(&tail[i]) == kEndSignature &&
                           load_le<std::uint16_t>(&tail[i + 20]) == tail.size() - i - kEndSize;
      if (matches) found = i;
    }
    if (found) break;
  }
  if (!found) fail("not a zip archive, or truncated: no end record");
  const std::byte* end = &tail[*found];
  comment_.assign(reinterpret_cast<const char*>(end + kEndSize), tail.size() - *found - kEndSize);
  const std::uint64_t end_offset = tail_offset + *found;

  Directory directory{.offset = load_le<std::uint32_t>(end + 16),
                      .size = load_le<std::uint32_t>(end + 12),
                      .count = load_le<std::uint16_t>(end + 10)};
  const auto disk = load_le<std::uint16_t>(end + 4);
  const auto directory_disk = load_le<std::uint16_t>(end + 6);
  std::uint64_t count_here = load_le<std::uint16_t>(end + 8);
  std::uint64_t directory_end = end_offset;

  std::array<std::byte, kLocator64Size> locator{};
  if (end_offset >= kLocator64Size) file_->read_at(end_offset - kLocator64Size, locator);
  if (load_le<std::uint32_t>(locator.data()) == kLocator64Signature) {
    const auto end64_offset = load_le<std::uint64_t>(&locator[8]);
    if (load_le<std::uint32_t>(&locator[4]) != 0 || load_le<std::uint32_t>(&locator[16]) > 1) {
      fail("refused: a zip archive in several parts");
    }
    const std::uint64_t locator_offset = end_offset - kLocator64Size;
    std::array<std::byte, kEnd64Size> end64{};
    if (!inside(end64_offset, kEnd64Size, locator_offset))
      fail("broken zip archive: zip64 end record misplaced");
    file_->read_at(end64_offset, end64);
    const auto record_size = load_le<std::uint64_t>(&end64[4]);
    if (load_le<std::uint32_t>(end64.data()) != kEnd64Signature ||
        record_size != locator_offset - end64_offset - 12) {
      fail("broken zip archive: zip64 end record misplaced");
    }
    if (load_le<std::uint32_t>(&end64[16]) != 0 || load_le<std::uint32_t>(&end64[20]) != 0) {
      fail("refused: a zip archive in several parts");
    }
    const Directory wide{.offset = load_le<std::uint64_t>(&end64[48]),
                         .size = load_le<std::uint64_t>(&end64[40]),
                         .count = load_le<std::uint64_t>(&end64[32])};
    // Two readers that trust different records must not see different archives.
    const bool agree = (directory.offset == kMax32 || directory.offset == wide.offset) &&
                       (directory.size == kMax32 || directory.size == wide.size) &&
                       (directory.count == kMax16 || directory.count == wide.count);
    if (!agree) fail("broken zip archive: the two end records disagree");
    directory = wide;
    count_here = load_le<std::uint64_t>(&end64[24]);
    directory_end = end64_offset;
  }
  const bool one_part = (disk == 0 || disk == kMax16) && (directory_disk == 0 || directory_disk == kMax16) &&
                        count_here == directory.count;
  if (!one_part) fail("refused: a zip archive in several parts");
  if (!inside(directory.offset, directory.size, directory_end) ||
      directory.offset + directory.size != directory_end) {
    fail("broken zip archive: the directory is not where the end record says");
  }
  return directory;
}

void ZipReader::parse_directory(const Directory& directory) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(directory.size));
  file_->read_at(directory.offset, bytes);
  std::span<const std::byte> rest = bytes;
  entries_.reserve(static_cast<std::size_t>(directory.count));
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (rest.size() < kCentralSize || load_le<std::uint32_t>(rest.data()) != kCentralSignature) {
      fail(fmt::format("broken zip archive: directory record {} is damaged", i));
    }
    const std::byte* record = rest.data();
    const std::size_t name_length = load_le<std::uint16_t>(record + 28);
    const std::size_t extra_length = load_le<std::uint16_t>(record + 30);
    const std::size_t comment_length = load_le<std::uint16_t>(record + 32);
    const std::size_t record_size = kCentralSize + name_length + extra_length + comment_length;
    if (rest.size() < record_size) fail(fmt::format("broken zip archive: directory record {} is cut off", i));

    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(record + kCentralSize), name_length);
    entry.flags = load_le<std::uint16_t>(record + 8);
    entry.method = static_cast<ZipMethod>(load_le<std::uint16_t>(record + 10));
    entry.crc32 = load_le<std::uint32_t>(record + 16);
    entry.compressed_size = load_le<std::uint32_t>(record + 20);
    entry.size = load_le<std::uint32_t>(record + 24);
    entry.header_offset = load_le<std::uint32_t>(record + 42);
    const auto disk = load_le<std::uint16_t>(record + 34);
    constexpr std::uint32_t kFileType = 0xF000;
    constexpr std::uint32_t kLink = 0xA000;
    entry.link = (load_le<std::uint32_t>(record + 38) >> 16 & kFileType) == kLink;
    Zip64Values wide(rest.subspan(kCentralSize + name_length, extra_length));
    const bool complete =
        wide.widen(entry.size) && wide.widen(entry.compressed_size) && wide.widen(entry.header_offset);
    if (!complete) fail(entry, "broken: its 64-bit sizes are missing");
    if (disk != 0 && disk != kMax16) fail(entry, "refused: a zip archive in several parts");
    if (!inside(entry.header_offset, kLocalSize, directory.offset) ||
        !inside(entry.header_offset + kLocalSize, entry.compressed_size, directory.offset)) {
      fail(entry, "broken: it reaches beyond the end of the archive");
    }
    check_entry(entry);
    if (comment_length != 0) directory_surplus_ = "an entry with a comment";
    if (!is_ordinary_extra(rest.subspan(kCentralSize + name_length, extra_length)))
      directory_surplus_ = "an entry with an unknown field";
    entries_.push_back(std::move(entry));
    rest = rest.subspan(record_size);
  }
  if (!rest.empty()) fail("broken zip archive: the directory is larger than its entries");
}

void ZipReader::check_entry(const ZipEntry& entry) const {
  if (entry.name.find('\0') != std::string::npos) fail(entry, "refused: a zero byte in its name");
  if ((entry.flags & (kEncrypted | kStrongEncryption | kMaskedHeaders)) != 0)
    fail(entry, "refused: encrypted");
  if ((entry.flags & kPatched) != 0) fail(entry, "refused: holds patch data");
  switch (entry.method) {
    case ZipMethod::stored:
      if (entry.size != entry.compressed_size) fail(entry, "broken: stored, yet its two sizes differ");
      return;
    case ZipMethod::deflated:
      // Divides, because the product of two declared sizes could overflow.
      if (entry.size / kMaxRatio > entry.compressed_size) {
        fail(entry, fmt::format("refused: {} bytes cannot unpack to {}", entry.compressed_size, entry.size));
      }
      return;
  }
  fail(entry, fmt::format("refused: compression method {} is not supported", static_cast<int>(entry.method)));
}

void ZipReader::index_names(bool allow_twins) {
  by_name_.resize(entries_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  // Among entries with one name, the last comes first.
  std::ranges::sort(by_name_, [this](std::uint32_t a, std::uint32_t b) {
    const int order = entries_[a].name.compare(entries_[b].name);
    return order != 0 ? order < 0 : a > b;
  });
  if (allow_twins) return;
  const auto twin = std::adjacent_find(
      by_name_.begin(), by_name_.end(),
      [this](std::uint32_t a, std::uint32_t b) { return entries_[a].name == entries_[b].name; });
  if (twin != by_name_.end()) fail(entries_[*twin], "refused: two entries have this name");
}

void ZipReader::index_offsets(std::uint64_t directory_offset) {
  std::vector<const ZipEntry*> ordered;
  ordered.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) ordered.push_back(&entry);
  std::ranges::sort(ordered,
                    [](const ZipEntry* a, const ZipEntry* b) { return a->header_offset < b->header_offset; });
  boundaries_.reserve(ordered.size() + 1);
  for (const ZipEntry* entry : ordered) boundaries_.push_back(entry->header_offset);
  boundaries_.push_back(directory_offset);
  if (boundaries_.front() != 0) fail("refused: bytes before the first entry of the zip archive");
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    // The minimum size of an entry. payload_offset() adds the parts that only its local header shows.
    const std::uint64_t least = kLocalSize + ordered[i]->name.size() + ordered[i]->compressed_size;
    if (boundaries_[i + 1] - boundaries_[i] < least)
      fail(*ordered[i], "refused: it overlaps what follows it");
  }
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [this](std::uint32_t i, std::string_view key) { return entries_[i].name < key; });
  if (at == by_name_.end() || entries_[*at].name != name) return nullptr;
  return &entries_[*at];
}

std::uint64_t ZipReader::payload_offset(const ZipEntry& entry) const {
  std::array<std::byte, kLocalSize> header{};
  file_->read_at(entry.header_offset, header);
  if (load_le<std::uint32_t>(header.data()) != kLocalSignature) fail(entry, "broken: it has no local header");
  const auto flags = load_le<std::uint16_t>(&header[6]);
  const auto method = load_le<std::uint16_t>(&header[8]);
  const std::size_t name_length = load_le<std::uint16_t>(&header[26]);
  const std::size_t extra_length = load_le<std::uint16_t>(&header[28]);
  if ((flags & kRefusedFlags) != 0) fail(entry, "refused: encrypted or patched by its local header");
  std::vector<std::byte> variable(name_length + extra_length);
  const std::uint64_t payload = entry.header_offset + kLocalSize + variable.size();
  const std::uint64_t limit =
      *std::upper_bound(boundaries_.begin(), std::prev(boundaries_.end()), entry.header_offset);
  if (payload > limit || entry.compressed_size > limit - payload) {
    fail(entry, "refused: it overlaps what follows it");
  }
  file_->read_at(entry.header_offset + kLocalSize, variable);
  const std::string_view name(reinterpret_cast<const char*>(variable.data()), name_length);
  if (name != entry.name || method != static_cast<std::uint16_t>(entry.method)) {
    fail(entry, "refused: its local header and the directory disagree");
  }
  if ((flags & kSizesFollow) == 0) {
    std::uint64_t compressed_size = load_le<std::uint32_t>(&header[18]);
    std::uint64_t size = load_le<std::uint32_t>(&header[22]);
    Zip64Values wide(std::span<const std::byte>(variable).subspan(name_length));
    if (!wide.widen(size) || !wide.widen(compressed_size) || size != entry.size ||
        compressed_size != entry.compressed_size) {
      fail(entry, "refused: its local header and the directory disagree about its size");
    }
  }
  return payload;
}

std::string ZipReader::surplus() const {
  if (!comment_.empty()) return "a comment";
  if (!directory_surplus_.empty()) return directory_surplus_;
  for (const ZipEntry& entry : entries_) {
    const std::uint64_t payload = payload_offset(entry);
    const std::uint64_t next =
        *std::upper_bound(boundaries_.begin(), std::prev(boundaries_.end()), entry.header_offset);
    std::vector<std::byte> header(static_cast<std::size_t>(payload - entry.header_offset));
    file_->read_at(entry.header_offset, header);
    const std::size_t names = kLocalSize + load_le<std::uint16_t>(&header[26]);
    if (!is_ordinary_extra(std::span(header).subspan(names))) return "an entry with an unknown field";
    const bool same_sum =
        (entry.flags & kSizesFollow) != 0 || load_le<std::uint32_t>(&header[14]) == entry.crc32;
    if (load_le<std::uint16_t>(&header[6]) != entry.flags || !same_sum)
      return "an entry whose local header and directory disagree";
    const std::uint64_t end = payload + entry.compressed_size;
    if (next != end && !is_descriptor(entry, end, next - end)) return "bytes between its entries";
  }
  return {};
}

/// A descriptor is the signature, the checksum and the two sizes, of 32 or 64 bits.
bool ZipReader::is_descriptor(const ZipEntry& entry, std::uint64_t offset, std::uint64_t size) const {
  if ((entry.flags & kSizesFollow) == 0 || (size != 12 && size != 16 && size != 20 && size != 24))
    return false;
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  file_->read_at(offset, bytes);
  const bool wide = size >= 20;
  const bool has_mark = size == 16 || size == 24;
  const std::byte* at = bytes.data();
  if (has_mark && load_le<std::uint32_t>(at) != kDescriptorSignature) return false;
  at += has_mark ? 4 : 0;
  const auto number = [&](std::size_t index) -> std::uint64_t {
    return wide ? load_le<std::uint64_t>(at + 4 + 8 * index) : load_le<std::uint32_t>(at + 4 + 4 * index);
  };
  return load_le<std::uint32_t>(at) == entry.crc32 && number(0) == entry.compressed_size &&
         number(1) == entry.size;
}

std::shared_ptr<const ByteSource> ZipReader::open(const ZipEntry& entry, std::uint64_t inflate_limit) const {
  const std::uint64_t payload = payload_offset(entry);
  if (entry.method == ZipMethod::stored) return slice_source(file_, payload, entry.compressed_size);
  if (entry.size > inflate_limit) {
    fail(entry,
         fmt::format("refused: {} bytes unpacked, at most {} are accepted", entry.size, inflate_limit));
  }
  // The memory grows with the bytes that really come out, never with the declared size.
  std::vector<std::byte> bytes;
  stream(entry,
         [&](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  return memory_source(std::move(bytes), file_->name());
}

}  // namespace msprobe::archive
