// SPDX-License-Identifier: Apache-2.0
// The bytes of a pickle, read ahead in pieces: nobody knows where a pickle ends before its STOP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/byte_source.hpp"
#include "support/little_endian.hpp"

namespace msprobe::formats {

/// Every read checks that the bytes are there, inside the limit, and do not straddle the end of a frame.
class PickleStream {
 public:
  PickleStream(const ByteSource& source, std::uint64_t offset, std::uint64_t max_bytes);

  std::uint8_t u8() { return std::to_integer<std::uint8_t>(*take(1)); }
  template <typename T>
  T little() {
    return load_le<T>(take(sizeof(T)));
  }
  /// The next `length` bytes; valid until the next read.
  std::string_view characters(std::uint64_t length);
  /// The bytes up to the next newline, which is skipped; valid until the next read.
  std::string_view line();

  void begin_frame(std::uint64_t length);
  /// FormatError if STOP came before the end of a frame.
  void end_of_pickle() const;

  std::uint64_t position() const { return window_offset_ + at_; }
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  const std::byte* take(std::size_t length);
  void fill(std::size_t length);
  std::uint64_t left() const { return end_ - position(); }

  const ByteSource& source_;
  std::uint64_t begin_;
  std::uint64_t end_;            // of what may be read
  std::uint64_t frame_end_ = 0;  // of the current frame; not after position() if there is none
  bool limited_ = false;         // end_ is the limit, not the end of the source
  std::vector<std::byte> window_;
  std::uint64_t window_offset_;  // of window_[0] in the source
  std::size_t at_ = 0;           // next byte in the window
};

}  // namespace msprobe::formats
