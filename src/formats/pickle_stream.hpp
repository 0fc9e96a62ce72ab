// SPDX-License-Identifier: Apache-2.0
// The bytes of a pickle, read ahead in pieces: only its STOP shows where a pickle ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/byte_source.hpp"
#include "support/little_endian.hpp"

namespace msprobe::formats {

/// How the stream treats a value that crosses the end of a frame. Python's readers differ: one refuses it,
/// one reads on, and one loses the rest of the frame.
enum class Straddling { refused, noticed };

/// Every read checks that the bytes exist, are within the limit, and do not cross the end of a frame.
class PickleStream {
 public:
  PickleStream(const ByteSource& source, std::uint64_t offset, std::uint64_t max_bytes,
               Straddling straddling = Straddling::refused);

  std::uint8_t u8() { return std::to_integer<std::uint8_t>(*take(1)); }
  template <typename T>
  T little() {
    return load_le<T>(take(sizeof(T)));
  }
  /// The next `length` bytes; valid until the next read.
  std::string_view characters(std::uint64_t length);
  /// The bytes up to the next newline, which is skipped; valid until the next read.
  std::string_view line();
  /// Like line(); nothing if the line is longer than `longest`. Such a line is skipped without being kept.
  std::optional<std::string_view> short_line(std::size_t longest);
  void skip(std::uint64_t length);

  void begin_frame(std::uint64_t length);
  /// Has a value, or a frame, crossed the end of a frame?
  bool straddled() const { return straddled_; }
  /// FormatError if STOP came before the end of a frame.
  void end_of_pickle() const;

  std::uint64_t position() const { return window_offset_ + at_; }
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  const std::byte* take(std::size_t length);
  void check_frame(std::uint64_t begin, std::uint64_t length);
  void fill(std::size_t length);
  std::uint64_t left() const { return end_ - position(); }

  const ByteSource& source_;
  std::uint64_t begin_;
  std::uint64_t end_;            // of what may be read
  std::uint64_t frame_end_ = 0;  // of the current frame; not beyond position() if there is no frame
  Straddling straddling_;
  bool straddled_ = false;
  bool limited_ = false;  // end_ is the limit, not the end of the source
  std::vector<std::byte> window_;
  std::uint64_t window_offset_;  // of window_[0] in the source
  std::size_t at_ = 0;           // next byte in the window
};

}  // namespace msprobe::formats
