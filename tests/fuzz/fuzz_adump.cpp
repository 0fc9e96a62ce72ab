// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "formats/adump.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

namespace msprobe {
namespace {

void read_items(const formats::AdumpFile& dump) {
  constexpr std::size_t kMost = 50;
  for (std::size_t i = 0; i < dump.items.size() && i < kMost; ++i) {
    const formats::AdumpItem& item = dump.items[i];
    if (item.offset > dump.file->size() || item.size > dump.file->size() - item.offset) __builtin_trap();
    if (item.role == formats::AdumpRole::buffer || item.role == formats::AdumpRole::space) continue;
    unless_refused([&] { read_elements(formats::adump_tensor(dump, item)); });
    // Any output may be an overflow record, by the name of its file.
    std::vector<std::byte> bytes(static_cast<std::size_t>(item.size));
    dump.file->read_at(item.offset, bytes);
    unless_refused([&] {
      formats::op_debug_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "record");
    });
  }
}

}  // namespace
}  // namespace msprobe

FUZZ_READER(adump)(const std::uint8_t* data, std::size_t size) {
  // The name tells the thread of a sliced dump.
  const auto bytes = std::as_bytes(std::span(data, size));
  auto file = msprobe::memory_source(std::vector<std::byte>(bytes.begin(), bytes.end()), "Add.x.1.2.1.99");
  msprobe::read_items(msprobe::formats::open_adump(std::move(file)));
}
