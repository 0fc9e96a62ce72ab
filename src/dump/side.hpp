// SPDX-License-Identifier: Apache-2.0
// One side of a comparison: a rank's dump.json as a flat list of items, one for each possible row.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dump/communication.hpp"
#include "dump/dump_json.hpp"
#include "dump/names.hpp"
#include "dump/stack_json.hpp"
#include "dump/tree.hpp"
#include "dump/value.hpp"

namespace msprobe::dump {

enum class State : std::uint8_t { input, output, parameters, parameters_grad, debug };
enum class RequiresGrad : std::uint8_t { unknown, no, yes };

struct Item {
  std::uint32_t api = 0;
  std::uint32_t name = 0;  // numbers of texts in the side's pool
  std::uint32_t dtype = 0;
  std::uint32_t shape = 0;
  std::uint32_t checksum = 0;   // CRC-32 or xor text; 0: no checksum, prints N/A
  std::uint32_t data_name = 0;  // 0: there is no data file
  State state = State::input;
  RequiresGrad requires_grad = RequiresGrad::unknown;
  bool is_tensor = false;     // has a dtype: a tensor or an array, not a plain argument
  bool has_checksum = false;  // recorded, or made from a recorded value
  StatisticValues statistics;
};
static_assert(sizeof(Item) <= 64);

/// How a rank holds a tensor of several ranks (DTensor): the whole, a part along an axis, or a part of a sum.
/// If the mesh has several axes, the split one counts.
struct Placement {
  enum class PlacementKind : std::uint8_t { unknown, replicate, shard, partial };
  PlacementKind kind = PlacementKind::unknown;
  std::uint8_t axis = 0;  // of a shard

  bool operator==(const Placement&) const = default;
};

/// The operation and peer of a point-to-point transfer, as texts.
struct P2PNames {
  std::uint32_t operation = 0;
  std::uint32_t peer = 0;
};

/// Items that follow one another, by their numbers, for a loop: clang 14 cannot compile std::views::iota.
struct ItemNumbers {
  struct Iterator {
    std::uint32_t number = 0;
    std::uint32_t operator*() const { return number; }
    void operator++() { ++number; }
    bool operator==(const Iterator&) const = default;
  };
  Iterator first;
  Iterator last;  // not one of them
  Iterator begin() const { return first; }
  Iterator end() const { return last; }
};

struct Api {
  std::uint32_t name = 0;
  std::uint32_t first = 0;  // index of its first item
  std::uint32_t count = 0;
  std::uint32_t size = 0;    // bytes of its value in the file
  std::uint64_t offset = 0;  // and its place in the file, for read_entry_at()
  NameParts parts;           // of its name

  ItemNumbers items() const { return {{first}, {first + count}}; }
};

struct Side {
  Header header;
  TextPool pool;
  std::vector<Api> apis;      // in the order of the file
  std::vector<Item> items;    // those of an API together: inputs, parameters, outputs, parameter gradients
  std::vector<Item> buffers;  // of modules, in the order of the file; they give no rows
  bool has_md5 = false;       // md5 comparison is asked for (docs/rules.md, "By what dumps are compared")
  std::uint64_t skipped = 0;  // entries whose name says neither forward, backward nor parameters_grad
  std::string json;
  std::string tensor_directory;
  std::optional<StackTable> stacks;
  std::string stack_json;  // where they were read
  /// Items that represent several others (--consistent_check), with these others; they follow the items of
  /// the file.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> merged;

  std::unordered_map<std::uint32_t, P2PNames> transfers;    // by the names of their items
  std::unordered_map<std::uint32_t, Placement> placements;  // the same
  /// The tensor to which a recorded gradient belongs, if its place does not say so; as texts, by the names of
  /// their items.
  std::unordered_map<std::uint32_t, std::uint32_t> gradients_of;
  /// How many elements are true, or -inf, where the recorder counted them; by the names of their items.
  std::unordered_map<std::uint32_t, double> counts;
  /// The arguments of communication, by entry; if they were asked for.
  std::map<std::string, CommCall, std::less<>> calls;

  std::string_view text(std::uint32_t id) const { return pool.at(id); }
  std::string_view name(const Item& item) const { return pool.at(item.name); }
  /// The name of an entry, taken apart. The views are those of text().
  EntryName parsed_name(const Api& api) const { return api.parts.of(text(api.name)); }
  EntryName parsed_name(std::size_t api) const { return parsed_name(apis[api]); }
  Placement placement(const Item& item) const {
    const auto found = placements.find(item.name);
    return found == placements.end() ? Placement() : found->second;
  }
  /// Empty if the place of the gradient says to which tensor it belongs.
  std::string_view gradient_of(const Item& item) const {
    const auto found = gradients_of.find(item.name);
    return found == gradients_of.end() ? std::string_view() : text(found->second);
  }
  /// Null if the item is not a transfer.
  const P2PNames* transfer(const Item& item) const {
    const auto found = transfers.find(item.name);
    return found == transfers.end() ? nullptr : &found->second;
  }
};

struct LoadOptions {
  const CommunicationNames* communication = nullptr;  // if given, the calls that it names are kept
  bool stacks = true;
  std::string stack_json;  // empty: stack.json beside the dump.json, if there is one
  /// Called for every entry, in the order of the file, with the place of its value.
  std::function<void(std::string_view name, std::uint64_t offset, std::uint64_t size)> on_entry = nullptr;
  std::function<void(std::uint64_t)> on_bytes =
      nullptr;  // called with the number of bytes that were read of the dump.json
};

/// Reads and flattens one rank. Throws IoError, FormatError.
Side load_side(const RankDump& rank, const LoadOptions& options);

/// The folder of a rank's data files.
std::string tensor_directory_of(const RankDump& rank);

/// For tests and fuzzing: the same from a source, without stacks.
Side load_side(const ByteSource& json, const CommunicationNames* communication = nullptr);

}  // namespace msprobe::dump
