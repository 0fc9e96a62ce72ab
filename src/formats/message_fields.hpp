// SPDX-License-Identifier: Apache-2.0
// The fields of a protobuf message that is a file or a part of one. A small window reads them, so the message
// may have any size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::formats {

class MessageFields {
 public:
  struct MessageField {
    std::uint64_t number = 0;
    std::uint64_t wire = 0;    // 0: a number, 2: bytes, 1 and 5: of 8 and 4 bytes
    std::uint64_t value = 0;   // of a number
    std::uint64_t offset = 0;  // of bytes, in the file
    std::uint64_t length = 0;
    bool is_bytes(std::uint64_t wanted) const { return number == wanted && wire == 2; }
  };

  /// `what` is the file, for messages: "MindSpore checkpoint".
  MessageFields(const ByteSource& file, std::uint64_t begin, std::uint64_t end, std::string_view what)
      : file_(file), what_(what), at_(begin), end_(end) {}

  /// False at the end. FormatError if the message is truncated or broken.
  bool next(MessageField& field);
  /// A bare number, as packed lists hold them.
  std::uint64_t varint();
  bool at_end() const { return at_ == end_; }

 private:
  [[noreturn]] void fail(const std::string& reason) const;
  void skip(std::uint64_t count);
  std::byte byte_at(std::uint64_t offset);

  const ByteSource& file_;
  std::string_view what_;
  std::uint64_t at_;
  std::uint64_t end_;
  std::array<std::byte, 64> window_{};
  std::uint64_t window_begin_ = 0;
  std::size_t window_size_ = 0;
};

}  // namespace msprobe::formats
