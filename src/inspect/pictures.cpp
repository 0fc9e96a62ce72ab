// SPDX-License-Identifier: Apache-2.0
#include "inspect/pictures.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "support/crc32.hpp"
#include "support/little_endian.hpp"

namespace msprobe::inspect {
namespace {

constexpr std::uint64_t kLargestPicture = std::uint64_t{256} << 20;
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";

/// The rest of the file. A read beyond its end takes nothing.
class Rest {
 public:
  explicit Rest(std::string_view bytes) : bytes_(bytes) {}

  bool skip(std::size_t count) {
    if (count > bytes_.size()) return false;
    bytes_.remove_prefix(count);
    return true;
  }
  bool at_end() const { return bytes_.empty(); }
  std::string_view bytes() const { return bytes_; }
  /// -1 at the end.
  int next() {
    if (bytes_.empty()) return -1;
    const int byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }

 private:
  std::string_view bytes_;
};

std::uint32_t big_endian(std::string_view bytes, std::size_t count) {
  std::uint32_t value = 0;
  for (const char c : bytes.substr(0, count)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

bool is_png(Rest rest) {
  constexpr std::size_t kAround = 12;  // length, name and checksum
  rest.skip(kPng.size());
  for (bool first = true;; first = false) {
    const std::string_view bytes = rest.bytes();
    if (bytes.size() < kAround) return false;
    const std::size_t length = big_endian(bytes, 4);
    if (length > bytes.size() - kAround) return false;
    const std::string_view name = bytes.substr(4, 4);
    if (first && name != "IHDR") return false;
    const auto checked = std::as_bytes(std::span(bytes.substr(4, 4 + length)));
    if (crc32(0, checked) != big_endian(bytes.substr(8 + length), 4)) return false;
    rest.skip(length + kAround);
    if (name == "IEND") return length == 0 && rest.at_end();
  }
}

bool is_jpeg(Rest rest) {
  rest.skip(2);
  for (;;) {
    if (rest.next() != 0xFF) return false;
    int marker = rest.next();
    while (marker == 0xFF) marker = rest.next();
    if (marker == 0xD9) return rest.at_end();
    if (marker <= 0 || marker == 0xD8) return false;
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7)) continue;
    if (rest.bytes().size() < 2 || !rest.skip(std::max<std::size_t>(big_endian(rest.bytes(), 2), 2)))
      return false;
    if (marker != 0xDA) continue;
    // The coded data go on to the next marker.
    const std::string_view data = rest.bytes();
    std::size_t at = data.find('\xff');
    while (at != std::string_view::npos && at + 1 < data.size() &&
           (data[at + 1] == '\0' || (data[at + 1] & '\xf8') == '\xd0'))
      at = data.find('\xff', at + 2);
    if (at == std::string_view::npos) return false;
    rest.skip(at);
  }
}

/// Blocks with a byte of length before each, up to an empty one.
bool skip_gif_data(Rest& rest) {
  for (;;) {
    const int length = rest.next();
    if (length < 0 || !rest.skip(static_cast<std::size_t>(length))) return false;
    if (length == 0) return true;
  }
}

bool skip_gif_colors(Rest& rest, int flags) {
  return (flags & 0x80) == 0 || rest.skip(std::size_t{3} << ((flags & 7) + 1));
}

bool is_gif(Rest rest) {
  if (!rest.skip(10)) return false;
  const int flags = rest.next();
  if (!rest.skip(2) || !skip_gif_colors(rest, flags)) return false;
  for (;;) {
    const int kind = rest.next();
    if (kind == 0x3B) return rest.at_end();
    if (kind == 0x21) {
      if (rest.next() < 0 || !skip_gif_data(rest)) return false;
    } else if (kind == 0x2C) {
      if (!rest.skip(8)) return false;
      const int local = rest.next();
      if (local < 0 || !skip_gif_colors(rest, local) || !rest.skip(1) || !skip_gif_data(rest)) return false;
    } else {
      return false;
    }
  }
}

bool is_webp(Rest rest) {
  const auto number = [](std::string_view bytes) {
    return load_le<std::uint32_t>(std::as_bytes(std::span(bytes)).data());
  };
  if (rest.bytes().size() < 12 || std::uint64_t{number(rest.bytes().substr(4))} + 8 != rest.bytes().size())
    return false;
  rest.skip(12);
  while (!rest.at_end()) {
    if (rest.bytes().size() < 8) return false;
    const std::uint64_t length = number(rest.bytes().substr(4));
    rest.skip(8);
    if (!rest.skip(static_cast<std::size_t>(length + length % 2))) return false;
  }
  return true;
}

}  // namespace

std::string picture_kind(const ByteSource& file) {
  const std::string start = first_bytes(file, 12);
  if (start.starts_with(kPng)) return "a PNG picture";
  if (start.starts_with("\xff\xd8\xff")) return "a JPEG picture";
  if (start.starts_with("GIF87a") || start.starts_with("GIF89a")) return "a GIF picture";
  return start.starts_with("RIFF") && start.ends_with("WEBP") ? "a WebP picture" : "";
}

bool is_whole_picture(const ByteSource& file) {
  if (file.size() > kLargestPicture) return false;
  const std::string bytes = read_all(file, kLargestPicture);
  const Rest rest(bytes);
  switch (bytes.empty() ? '\0' : bytes.front()) {
    case '\x89':
      return is_png(rest);
    case '\xff':
      return is_jpeg(rest);
    case 'G':
      return is_gif(rest);
    default:
      return is_webp(rest);
  }
}

}  // namespace msprobe::inspect
