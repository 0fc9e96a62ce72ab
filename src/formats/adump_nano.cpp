// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <span>

#include "formats/adump_header.hpp"
#include "support/little_endian.hpp"

namespace msprobe::formats {
namespace {

/// Little-endian integers out of a stretch of bytes that may be too short.
class NanoReader {
 public:
  NanoReader(std::string_view bytes, const AdumpFile& dump) : rest_(bytes), dump_(dump) {}

  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) fail_adump(dump_, "its header (nano form) is cut off");
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  template <std::unsigned_integral T>
  T read() {
    return load_le<T>(std::as_bytes(std::span(take(sizeof(T)))).data());
  }
  std::int64_t code() { return static_cast<std::int32_t>(read<std::uint32_t>()); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  const AdumpFile& dump_;
};

/// The nano form numbers its element types in its own way; codes as in adump.cpp, or a negative number.
std::int64_t common_type(std::int64_t code) {
  switch (code) {
    case 0:
      return 1;  // float32
    case 1:
      return 2;  // float16
    case 2:
      return 3;  // int8
    case 3:
      return 7;  // int32
    case 4:
      return 4;  // uint8
    case 6:
      return 5;  // int16
    case 7:
      return 6;  // uint16
    case 8:
      return 9;  // uint32
    case 9:
      return 8;  // int64
    case 10:
      return 10;  // uint64
    case 11:
      return 12;  // float64
    case 12:
      return 11;  // bool
    case 16:
    case 17:
    case 23:
    case 27:
      return code;  // complex64, complex128, resource, bfloat16
    case 30:
      return 29;  // uint1
    default:
      return -1 - code;
  }
}

constexpr std::uint32_t kShapeTag = 0;
constexpr std::uint32_t kInputTag = 4;
constexpr std::uint32_t kOutputTag = 5;

void read_items(NanoReader block, AdumpRole role, AdumpFile& dump) {
  const auto count = block.read<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) {
    AdumpItem& item = add_item(dump, role);
    item.type = common_type(block.code());
    item.format = block.code();
    block.code();                                                          // address type
    if (role == AdumpRole::output) block.take(3 * sizeof(std::uint32_t));  // original index, type and layout
    block.take(2 * sizeof(std::uint64_t));                                 // address, offset
    item.size = block.read<std::uint64_t>();
    NanoReader list(block.take(block.read<std::uint32_t>()), dump);
    while (!list.empty()) {
      const auto tag = list.read<std::uint32_t>();
      const std::string_view value = list.take(list.read<std::uint32_t>());
      if (tag != kShapeTag) continue;
      item.shape.clear();
      for (NanoReader dims(value, dump); !dims.empty();)
        add_dimension(dump, item.shape, dims.read<std::uint64_t>());
    }
  }
}

}  // namespace

void read_nano_header(std::string_view header, AdumpFile& dump) {
  NanoReader fields(header, dump);
  fields.read<std::uint32_t>();  // magic
  dump.version = std::to_string(fields.read<std::uint32_t>());
  for (const std::uint32_t wanted : {kInputTag, kOutputTag}) {
    const auto tag = fields.read<std::uint32_t>();
    if (tag != wanted)
      fail_adump(dump, fmt::format("its header (nano form) has block {} instead of {}", tag, wanted));
    const NanoReader block(fields.take(fields.read<std::uint32_t>()), dump);
    read_items(block, wanted == kInputTag ? AdumpRole::input : AdumpRole::output, dump);
  }
  number_items(dump);
}

}  // namespace msprobe::formats
