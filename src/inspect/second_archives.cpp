// SPDX-License-Identifier: Apache-2.0
#include "inspect/second_archives.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "archive/zip_format.hpp"
#include "support/little_endian.hpp"

namespace msprobe::inspect {
namespace {

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kSumBegin = 148;
constexpr std::size_t kSumSize = 8;

// Reads an octal number with Python's tolerance, or a binary one.
std::optional<std::uint64_t> tar_number(std::string_view field) {
  std::uint64_t value = 0;
  if (field.front() == '\x80') {
    for (const char c : field.substr(1)) value = value << 8 | static_cast<std::uint8_t>(c);
    return value;
  }
  field = field.substr(0, field.find('\0'));
  std::string text;
  std::copy_if(field.begin(), field.end(), std::back_inserter(text),
               [](char c) { return c != '_' && c != '+' && static_cast<unsigned char>(c) > ' '; });
  if (text.starts_with("0o") || text.starts_with("0O")) text.erase(0, 2);
  for (const char c : text) {
    if (c < '0' || c > '7') return {};
    value = value << 3 | static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

}  // namespace

bool is_tar(const ByteSource& file) {
  std::string block = first_bytes(file, kTarBlock);
  if (block.size() < kTarBlock) return false;
  if (std::ranges::all_of(block, [](char c) { return c == '\0'; })) return false;
  const auto sum = tar_number(std::string_view(block).substr(kSumBegin, kSumSize));
  if (!sum) return false;
  std::fill_n(block.begin() + kSumBegin, kSumSize, ' ');
  std::uint64_t plain = 0;
  std::int64_t with_signs = 0;  // some old writers summed signed bytes
  for (const char c : block) {
    plain += static_cast<std::uint8_t>(c);
    with_signs += static_cast<signed char>(c);
  }
  return *sum == plain || static_cast<std::int64_t>(*sum) == with_signs;
}

std::shared_ptr<const ByteSource> appended_zip(const std::shared_ptr<const ByteSource>& file) {
  using namespace archive;
  const std::uint64_t length = std::min(file->size(), kEndSize + kLongestComment);
  const std::uint64_t tail_begin = file->size() - length;
  std::vector<std::byte> tail(static_cast<std::size_t>(length));
  file->read_at(tail_begin, tail);
  for (std::size_t at = tail.size(); at-- > 0;) {
    if (tail.size() - at < kEndSize || load_le<std::uint32_t>(&tail[at]) != kEndSignature) continue;
    const auto size = load_le<std::uint32_t>(&tail[at + 12]);
    const auto offset = load_le<std::uint32_t>(&tail[at + 16]);
    const std::uint64_t end = tail_begin + at;
    const bool is_wide = end >= kLocator64Size && (size == kMax32 || offset == kMax32);
    std::array<std::byte, 4> start{};
    if (is_wide) {
      file->read_at(end - kLocator64Size, start);
      if (load_le<std::uint32_t>(start.data()) == kLocator64Signature) return file;
    }
    // Python searches for the directory directly before this record, wherever the archive begins.
    if (size < kCentralSize || size > end) continue;
    file->read_at(end - size, start);
    if (load_le<std::uint32_t>(start.data()) != kCentralSignature) continue;
    const std::uint64_t before = std::uint64_t{size} + offset;
    const std::uint64_t begin = before > end ? 0 : end - before;
    return slice_source(file, begin, file->size() - begin);
  }
  return nullptr;
}

std::vector<std::shared_ptr<const ByteSource>> consecutive_zips(
    const std::shared_ptr<const ByteSource>& file) {
  using namespace archive;
  constexpr std::size_t kMostArchives = 1'000'000;
  std::vector<std::shared_ptr<const ByteSource>> archives;
  // The loop goes backwards: the end record of an archive shows where it begins.
  for (std::uint64_t end = file->size(); end > 0;) {
    std::array<std::byte, kEnd64Size + kLocator64Size + kEndSize> tail{};
    if (end < tail.size() || archives.size() == kMostArchives) return {};
    file->read_at(end - tail.size(), tail);
    const std::byte* const record = &tail[kEnd64Size + kLocator64Size];
    if (load_le<std::uint32_t>(record) != kEndSignature) return {};
    std::uint64_t directory = load_le<std::uint32_t>(record + 12);
    std::uint64_t before = load_le<std::uint32_t>(record + 16);
    std::uint64_t records = kEndSize;
    if (load_le<std::uint32_t>(&tail[kEnd64Size]) == kLocator64Signature) {
      directory = load_le<std::uint64_t>(&tail[40]);
      before = load_le<std::uint64_t>(&tail[48]);
      records = tail.size();
    }
    if (directory > end || before > end - directory || records > end - directory - before) return {};
    const std::uint64_t size = before + directory + records;
    archives.push_back(slice_source(file, end - size, size));
    end -= size;
  }
  std::ranges::reverse(archives);
  return archives;
}

}  // namespace msprobe::inspect
