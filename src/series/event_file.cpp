// SPDX-License-Identifier: Apache-2.0
#include "series/event_file.hpp"

#include <bit>
#include <cmath>
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

void append_field(std::string& out, std::uint32_t number, std::uint32_t kind) {
  append_varint(out, number << 3 | kind);
}

/// A checksum of data that contains checksums would say little, so the format rotates and shifts it.
std::uint32_t masked_checksum(std::string_view bytes) {
  constexpr std::uint32_t kShift = 0xa282ead8;
  return std::rotr(crc32c(std::as_bytes(std::span(bytes.data(), bytes.size()))), 15) + kShift;
}

void append_record(std::string& out, std::string_view event) {
  std::string head;
  append_le<std::uint64_t>(head, event.size());
  append_le<std::uint32_t>(head, masked_checksum(head));
  out += head;
  out += event;
  append_le<std::uint32_t>(out, masked_checksum(event));
}

void append_sized(std::string& out, std::uint32_t number, std::string_view bytes) {
  append_field(out, number, kSized);
  append_varint(out, bytes.size());
  out += bytes;
}

void append_time(std::string& out, double time) {
  append_field(out, kEventTime, kEightBytes);
  append_le<std::uint64_t>(out, std::bit_cast<std::uint64_t>(time));
}

}  // namespace

void append_event_version(std::string& out, double time) {
  std::string event;
  append_time(event, time);
  append_sized(event, kEventVersion, "brain.Event:2");
  append_record(out, event);
}

void append_event(std::string& out, double time, std::int64_t step, std::span<const Scalar> scalars) {
  std::string event;
  append_time(event, time);
  append_field(event, kEventStep, kVarint);
  append_varint(event, static_cast<std::uint64_t>(step));
  std::string summary;
  std::string tag;
  std::string value;
  for (const Scalar& scalar : scalars) {
    tag = scalar.tag;
    tag += scalar.suffix;
    value.clear();
    append_sized(value, kValueTag, tag);
    append_field(value, kValueSimple, kFourBytes);
    append_le<std::uint32_t>(value, std::bit_cast<std::uint32_t>(scalar.value));
    append_sized(summary, kSummaryValue, value);
  }
  append_sized(event, kEventSummary, summary);
  append_record(out, event);
}

float event_value(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (std::fabs(value) > kMost)
    return std::copysign(std::numeric_limits<float>::infinity(),
                         static_cast<float>(std::copysign(1.0, value)));
  return static_cast<float>(value);
}

}  // namespace msprobe::series
