// SPDX-License-Identifier: Apache-2.0
#include "formats/message_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {

bool MessageFields::next(MessageField& field) {
  if (at_ == end_) return false;
  const std::uint64_t key = varint();
  field = {};
  field.number = key >> 3;
  field.wire = key & 7;
  if (field.number == 0 || field.number > 0x1fffffff) fail("a field without a number");
  switch (field.wire) {
    case 0:
      field.value = varint();
      return true;
    case 1:
      field.length = 8;
      break;
    case 2:
      field.length = varint();
      break;
    case 5:
      field.length = 4;
      break;
    default:
      fail("a field of an unknown kind");
  }
  field.offset = at_;
  skip(field.length);
  return true;
}

std::uint64_t MessageFields::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ == end_) fail("truncated: a number is cut off");
    const auto byte = std::to_integer<std::uint8_t>(byte_at(at_++));
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail("a number does not end");
}

void MessageFields::fail(const std::string& reason) const {
  throw FormatError(display(file_.name()), fmt::format("not a complete {}: {}", what_, reason));
}

void MessageFields::skip(std::uint64_t count) {
  if (count > end_ - at_) fail("truncated: a field is longer than the rest of it");
  at_ += count;
}

std::byte MessageFields::byte_at(std::uint64_t offset) {
  if (offset < window_begin_ || offset >= window_begin_ + window_size_) {
    window_begin_ = offset;
    window_size_ = static_cast<std::size_t>(std::min<std::uint64_t>(window_.size(), end_ - offset));
    file_.read_at(offset, std::span(window_).first(window_size_));
  }
  return window_[static_cast<std::size_t>(offset - window_begin_)];
}

}  // namespace msprobe::formats
