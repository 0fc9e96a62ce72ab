// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

constexpr std::size_t kFirstWindow = std::size_t{4} << 10;  // the pickle of one tensor fits
constexpr std::size_t kWindow = std::size_t{64} << 10;

}  // namespace

PickleStream::PickleStream(const ByteSource& source, std::uint64_t offset, std::uint64_t max_bytes,
                           Straddling straddling)
    : source_(source), begin_(offset), end_(source.size()), straddling_(straddling), window_offset_(offset) {
  if (offset > end_) fail("truncated");
  if (end_ - offset > max_bytes) {
    end_ = offset + max_bytes;
    limited_ = true;
  }
}

void PickleStream::fail(const std::string& reason) const {
  throw FormatError(display(source_.name()),
                    fmt::format("pickle at byte {}: {}", position() - begin_, reason));
}

// Makes `length` bytes, known to be there, available at at_.
void PickleStream::fill(std::size_t length) {
  const std::size_t kept = window_.size() - at_;
  if (kept != 0) std::memmove(window_.data(), window_.data() + at_, kept);
  window_offset_ += at_;
  at_ = 0;
  const std::size_t ahead = window_.empty() ? kFirstWindow : kWindow;
  const auto want =
      static_cast<std::size_t>(std::min<std::uint64_t>(end_ - window_offset_, std::max(length, ahead)));
  window_.resize(std::max(want, kept));
  source_.read_at(window_offset_ + kept, std::span(window_).subspan(kept));
}

void PickleStream::check_frame(std::uint64_t begin, std::uint64_t length) {
  if (begin >= frame_end_ || length <= frame_end_ - begin) return;
  if (straddling_ == Straddling::refused) fail("a value reaches beyond its frame");
  straddled_ = true;
}

const std::byte* PickleStream::take(std::size_t length) {
  if (length > left()) {
    fail(limited_ ? fmt::format("refused: more than {} bytes", end_ - begin_) : std::string("truncated"));
  }
  check_frame(position(), length);
  if (window_.size() - at_ < length) fill(length);
  const std::byte* data = window_.data() + at_;
  at_ += length;
  return data;
}

std::string_view PickleStream::characters(std::uint64_t length) {
  if (length > 0xffffffff) fail(fmt::format("refused: a string of {} bytes", length));
  const std::byte* data = take(static_cast<std::size_t>(length));
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(length)};
}

std::string_view PickleStream::line() {
  return *short_line(std::numeric_limits<std::size_t>::max());
}

std::optional<std::string_view> PickleStream::short_line(std::size_t longest) {
  const std::uint64_t line_begin = position();
  std::size_t passed = 0;    // of a line that is too long
  std::size_t searched = 0;  // of what is kept
  while (true) {
    const auto begin = window_.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto found =
        std::find(begin + static_cast<std::ptrdiff_t>(searched), window_.end(), std::byte{'\n'});
    const auto length = static_cast<std::size_t>(found - begin);
    if (found != window_.end()) {
      std::string_view text = characters(std::uint64_t{length} + 1);
      text.remove_suffix(1);
      check_frame(line_begin, position() - line_begin);
      if (passed + length > longest) return {};
      return text;
    }
    if (length >= left()) take(length + 1);  // reports the end
    searched = length;
    if (length > longest) {
      at_ += length;
      passed += length;
      searched = 0;
    }
    fill(static_cast<std::size_t>(std::min<std::uint64_t>(left(), std::uint64_t{searched} * 2 + 1)));
  }
}

void PickleStream::skip(std::uint64_t length) {
  if (length > left()) fail("truncated");
  check_frame(position(), length);
  if (length <= window_.size() - at_) {
    at_ += static_cast<std::size_t>(length);
    return;
  }
  window_offset_ = position() + length;
  window_.clear();
  at_ = 0;
}

void PickleStream::begin_frame(std::uint64_t length) {
  if (straddling_ == Straddling::noticed) {
    straddled_ = straddled_ || position() < frame_end_;
    frame_end_ = std::max(frame_end_, position() + std::min(length, UINT64_MAX - position()));
    return;
  }
  if (position() < frame_end_) fail("a frame inside a frame");
  if (length > left()) fail("truncated: a frame reaches beyond the end");
  frame_end_ = position() + length;
}

void PickleStream::end_of_pickle() const {
  if (position() < frame_end_) fail("it stops inside a frame");
}

}  // namespace msprobe::formats
