// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
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
  // float32, float16, int8, int32, uint8, none, int16, uint16, uint32, int64, uint64, float64, bool
  constexpr std::array<std::int64_t, 13> kTypes = {1, 2, 3, 7, 4, -6, 5, 6, 9, 8, 10, 12, 11};
  if (code >= 0 && code < static_cast<std::int64_t>(kTypes.size()))
    return kTypes[static_cast<std::size_t>(code)];
  if (code == 16 || code == 17 || code == 23 || code == 27)
    return code;                       // complex64, complex128, resource, bfloat16
  return code == 30 ? 29 : -1 - code;  // uint1
}

constexpr std::uint32_t kShapeTag = 0;
constexpr std::uint32_t kInputTag = 4;
constexpr std::uint32_t kOutputTag = 5;

void read_items(NanoReader block, AdumpRole role, AdumpFile& dump) {
  const auto count = block.read<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) {
    AdumpItem& item = add_item(dump, role);
    item.type = common_type(block.code());
    block.take(2 * sizeof(std::uint32_t));                                 // layout, address type
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
  fields.read<std::uint32_t>();  // version
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
