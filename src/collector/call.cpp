// SPDX-License-Identifier: Apache-2.0
#include "collector/call.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "dump/names.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"

namespace msprobe::collector {
namespace {

// Names are stored in blocks that never move, so they can be read without a lock.
constexpr std::size_t kBlock = 1024;
constexpr std::size_t kBlocks = 4096;
using Block = std::array<Name, kBlock>;

struct NameTable {
  std::mutex mutex;
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  std::array<std::atomic<Block*>, kBlocks> blocks = {};
  std::atomic<std::uint32_t> count = 0;
};

/// The table is never destroyed, because events may arrive while the process ends.
NameTable& table() {
  static NameTable* const kTable = new NameTable;
  return *kTable;
}

}  // namespace

std::uint32_t intern(std::string_view text) {
  NameTable& names = table();
  const std::lock_guard lock(names.mutex);
  if (const auto found = names.numbers.find(text); found != names.numbers.end()) return found->second;
  const std::uint32_t id = names.count.load(std::memory_order_relaxed);
  if (id == kBlock * kBlocks) throw Error("too many different names are recorded");
  std::atomic<Block*>& slot = names.blocks[id / kBlock];
  if (slot.load(std::memory_order_relaxed) == nullptr)
    slot.store(std::make_unique<Block>().release(), std::memory_order_release);
  Name& name = (*slot.load(std::memory_order_relaxed))[id % kBlock];
  name.text = text;
  name.path = dump::split_last(name.text).first;
  name.parent_path = dump::split_last(name.path).first;
  names.numbers.emplace(name.text, id);
  names.count.store(id + 1, std::memory_order_release);
  return id;
}

const Name& name_of(std::uint32_t id) {
  const NameTable& names = table();
  if (id >= names.count.load(std::memory_order_acquire)) throw std::out_of_range("unknown name");
  return (*names.blocks[id / kBlock].load(std::memory_order_acquire))[id % kBlock];
}

void lock_names() {
  table().mutex.lock();
}

void unlock_names() {
  table().mutex.unlock();
}

void append_entry_name(std::string& out, const CollectedCall& call) {
  out += name_of(call.name).text;
  const std::string_view direction = call.backward ? "backward" : "forward";
  out += '.';
  if (call.module) {
    out += direction;
    out += '.';
    append_json_integer(out, call.number);
  } else {
    append_json_integer(out, call.number);
    out += '.';
    out += direction;
  }
}

}  // namespace msprobe::collector
