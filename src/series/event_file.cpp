// SPDX-License-Identifier: Apache-2.0
#include "series/event_file.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "support/crc32.hpp"
#include "support/little_endian.hpp"

namespace msprobe::series {
namespace {

// The kinds of values, and the numbers of the fields that are written.
constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kEightBytes = 1;
constexpr std::uint32_t kSized = 2;
constexpr std::uint32_t kFourBytes = 5;
constexpr std::uint32_t kEventTime = 1;
constexpr std::uint32_t kEventStep = 2;
constexpr std::uint32_t kEventVersion = 3;
constexpr std::uint32_t kEventSummary = 5;
constexpr std::uint32_t kSummaryValue = 1;
constexpr std::uint32_t kValueTag = 1;
constexpr std::uint32_t kValueSimple = 2;

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

void append_field(std::string& out, std::uint32_t number, std::uint32_t kind) {
  append_varint(out, number << 3 | kind);
}

/// A checksum of data that contains checksums would say little, so the format rotates and shifts it.
std::uint32_t masked_checksum(std::string_view bytes) {
  constexpr std::uint32_t kShift = 0xa282ead8;
  return std::rotr(crc32c(std::as_bytes(std::span(bytes.data(), bytes.size()))), 15) + kShift;
}

/// Writes a record, whose length is known only at its end.
class EventRecord {
 public:
  explicit EventRecord(std::string& out) : out_(out), begin_(out.size()) { out.append(kHead, '\0'); }

  void finish() {
    std::string head;
    append_le<std::uint64_t>(head, out_.size() - begin_ - kHead);
    append_le<std::uint32_t>(head, masked_checksum(head));
    out_.replace(begin_, kHead, head);
    append_le<std::uint32_t>(out_, masked_checksum(std::string_view(out_).substr(begin_ + kHead)));
  }

 private:
  static constexpr std::size_t kHead = 12;
  std::string& out_;
  std::size_t begin_;
};

void append_time(std::string& out, double time) {
  append_field(out, kEventTime, kEightBytes);
  append_le<std::uint64_t>(out, std::bit_cast<std::uint64_t>(time));
}

std::size_t value_size(const Scalar& scalar) {
  const std::size_t tag = scalar.tag.size() + scalar.suffix.size();
  return 1 + varint_size(tag) + tag + 1 + sizeof(float);
}

void append_value(std::string& out, const Scalar& scalar) {
  append_field(out, kSummaryValue, kSized);
  append_varint(out, value_size(scalar));
  append_field(out, kValueTag, kSized);
  append_varint(out, scalar.tag.size() + scalar.suffix.size());
  out += scalar.tag;
  out += scalar.suffix;
  append_field(out, kValueSimple, kFourBytes);
  append_le<std::uint32_t>(out, std::bit_cast<std::uint32_t>(scalar.value));
}

}  // namespace

void append_event_version(std::string& out, double time) {
  constexpr std::string_view kVersion = "brain.Event:2";
  EventRecord record(out);
  append_time(out, time);
  append_field(out, kEventVersion, kSized);
  append_varint(out, kVersion.size());
  out += kVersion;
  record.finish();
}

void append_event(std::string& out, double time, std::int64_t step, std::span<const Scalar> scalars) {
  EventRecord record(out);
  append_time(out, time);
  append_field(out, kEventStep, kVarint);
  append_varint(out, static_cast<std::uint64_t>(step));
  std::size_t size = 0;
  for (const Scalar& scalar : scalars) {
    const std::size_t each = value_size(scalar);
    size += 1 + varint_size(each) + each;
  }
  append_field(out, kEventSummary, kSized);
  append_varint(out, size);
  for (const Scalar& scalar : scalars) append_value(out, scalar);
  record.finish();
}

float event_value(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (std::fabs(value) > kMost)
    return std::copysign(std::numeric_limits<float>::infinity(),
                         static_cast<float>(std::copysign(1.0, value)));
  return static_cast<float>(value);
}

}  // namespace msprobe::series
