// SPDX-License-Identifier: Apache-2.0
// What the JSON readers of this folder share: RapidJSON's reader over a ByteSource, with Python's liberties.
#pragma once

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::dump {

/// RapidJSON's input stream concept over a ByteSource, read in blocks. The end of the file reads as NUL.
class SourceStream {
 public:
  using Ch = char;
  explicit SourceStream(const ByteSource& source)
      : source_(source),
        buffer_(static_cast<std::size_t>(std::clamp<std::uint64_t>(source.size(), 2, kBlock))) {
    refill();
  }

  Ch Peek() const { return *current_; }
  Ch Take() {
    const Ch c = *current_;
    if (++current_ == end_) refill();
    return c;
  }
  std::size_t Tell() const {
    return static_cast<std::size_t>(block_begin_) + static_cast<std::size_t>(current_ - buffer_.data());
  }
  // The writing half of the concept is never called: parsing is not in place.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  std::size_t PutEnd(Ch*) { return 0; }

 private:
  static constexpr std::uint64_t kBlock = std::uint64_t{256} << 10;

  void refill() {
    check_interrupt();
    block_begin_ = next_;
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), source_.size() - next_));
    if (length == 0) {
      // One NUL for ever.
      buffer_[0] = '\0';
      current_ = buffer_.data();
      end_ = current_ + 2;
      buffer_[1] = '\0';
      return;
    }
    source_.read_at(next_, std::as_writable_bytes(std::span(buffer_.data(), length)));
    next_ += length;
    current_ = buffer_.data();
    end_ = current_ + length;
  }

  const ByteSource& source_;
  std::vector<char> buffer_;
  std::uint64_t next_ = 0;
  std::uint64_t block_begin_ = 0;
  const char* current_ = nullptr;
  const char* end_ = nullptr;
};

/// A handler reports why it stops the parse.
struct HandlerFailure {
  std::string reason;
  bool fail(std::string why) {
    reason = std::move(why);
    return false;
  }
};

/// Runs `handler` (with a HandlerFailure base) over the whole source; FormatError with file, offset and
/// reason.
template <typename Handler>
void parse_json(const ByteSource& source, Handler& handler) {
  constexpr unsigned kFlags = rapidjson::kParseNanAndInfFlag | rapidjson::kParseNumbersAsStringsFlag |
                              rapidjson::kParseValidateEncodingFlag;
  SourceStream stream(source);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (!result.IsError()) return;
  std::string reason = handler.reason;
  if (result.Code() == rapidjson::kParseErrorDocumentEmpty) {
    reason = "the file is empty";
  } else if (reason.empty()) {
    reason = result.Offset() >= source.size() ? "the JSON ends too early (truncated?)"
                                              : rapidjson::GetParseError_En(result.Code());
  }
  throw FormatError(display(source.name()), reason + " (byte " + std::to_string(result.Offset()) + ")");
}

}  // namespace msprobe::dump
