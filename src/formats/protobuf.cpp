// SPDX-License-Identifier: Apache-2.0
#include "formats/protobuf.hpp"

#include <span>
#include <stdexcept>

#include "support/little_endian.hpp"

namespace msprobe::formats {

std::uint64_t ProtobufReader::varint() {
  constexpr int kBits = 64;
  std::uint64_t value = 0;
  for (int shift = 0; shift < kBits; shift += 7) {
    if (rest_.empty()) fail_("a number in its header is cut off");
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail_("a number in its header does not end");
  throw std::logic_error("the failure of a protobuf message was not reported");
}

std::string_view ProtobufReader::take(std::uint64_t count) {
  if (count > rest_.size()) fail_("a field in its header is longer than the header");
  const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
  rest_.remove_prefix(taken.size());
  return taken;
}

bool ProtobufReader::next(ProtobufField& field) {
  if (rest_.empty()) return false;
  const std::uint64_t key = varint();
  field = {};
  field.number = key >> 3;
  if (field.number == 0 || field.number > 0x1fffffff) fail_("its header has a field without a number");
  const auto fixed = [](std::string_view bytes) { return std::as_bytes(std::span(bytes)).data(); };
  switch (key & 7) {
    case 0:
      field.value = varint();
      return true;
    case 1:
      field.value = load_le<std::uint64_t>(fixed(take(8)));
      return true;
    case 2:
      field.is_bytes = true;
      field.bytes = take(varint());
      return true;
    case 5:
      field.value = load_le<std::uint32_t>(fixed(take(4)));
      return true;
    default:
      fail_("its header has a field of an unknown kind");
      return false;
  }
}

}  // namespace msprobe::formats
