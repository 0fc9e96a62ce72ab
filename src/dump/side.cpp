// SPDX-License-Identifier: Apache-2.0
#include "dump/side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "dump/entry_items.hpp"
#include "dump/names.hpp"
#include "support/byte_source.hpp"
#include "support/check.hpp"
#include "support/error.hpp"
#include "support/json_scan.hpp"
#include "support/text.hpp"

namespace msprobe::dump {
namespace {

constexpr std::string_view kP2POp = "torch.distributed.P2POp";

/// Bytes of row names that a file of this size may give. A deep or long path above a long list of `null`
/// makes names without bound; real dumps stay far below.
std::uint64_t name_budget(std::uint64_t file_size) {
  constexpr std::uint64_t kAlways = std::uint64_t{4} << 20;
  constexpr std::uint64_t kPerByte = 64;
  return kAlways + kPerByte * std::min(file_size, std::numeric_limits<std::uint64_t>::max() / (2 * kPerByte));
}

/// Turns entries into items (docs/rules.md, "Rows of an entry").
class Flattener {
 public:
  /// `places`, which may be null, gets the place of each item's value in its entry.
  Flattener(Side& side, std::uint64_t file_size, std::vector<Entry::Index>* places = nullptr)
      : side_(side), places_(places), name_budget_(name_budget(file_size)) {}

  /// `place`: the place of the entry's value in the file.
  void add_entry(std::string_view name, const Entry& entry, const Api& place) {
    const auto parsed = parse_entry_name(name);
    if (!parsed) {
      ++side_.skipped;
      return;
    }
    entry_ = &entry;
    path_.assign(name);
    Api api = place;
    api.first = static_cast<std::uint32_t>(side_.items.size());
    api.parts = NameParts(name, *parsed);
    const auto name_of = [this](std::uint32_t index) { return side_.text(side_.apis[index].name); };
    const std::uint32_t known = known_.find(name, name_of);
    const bool repeated = known != TextIndex::kNone;
    api_index_ = repeated ? known : static_cast<std::uint32_t>(side_.apis.size());
    if (parsed->direction == Direction::parameters_grad) {
      state_ = State::parameters_grad;
      walk(0);
    } else if (parsed->direction == Direction::debug) {
      // Saved by name (debug.json): the entry is the value itself.
      state_ = State::debug;
      walk(0);
      look_for_md5_below(0);
    } else if (entry.is(0, NodeKind::object)) {
      section("input_args", ".input", State::input);
      section("input_kwargs", ".input", State::input);
      section("input", ".input", State::input);
      section("parameters", ".parameters", State::parameters);
      section("output", ".output", State::output);
      if (places_ == nullptr) take_buffers();
    }
    look_for_md5();
    api.count = static_cast<std::uint32_t>(side_.items.size()) - api.first;
    api.name = repeated ? side_.apis[known].name : side_.pool.add(name);
    if (repeated) {
      // A duplicate key: the place of the first, the value of the last, as Python reads it.
      side_.apis[known] = api;
      duplicates_ = true;
    } else {
      side_.apis.push_back(api);
      known_.add(api_index_, name_of);
    }
  }

  void finish() {
    if (duplicates_) remove_duplicates();
    std::uint32_t next = 0;
    for (const Api& api : side_.apis) {
      check(api.first == next, "the items of an entry follow those of the entry before it");
      next += api.count;
    }
    check(next == side_.items.size(), "each item belongs to an entry");
  }

 private:
  /// The items of a key that came again have a new place; the items of its first value are left over.
  void remove_duplicates() {
    std::vector<Item> items;
    items.reserve(side_.items.size());
    for (Api& api : side_.apis) {
      const auto first = static_cast<std::uint32_t>(items.size());
      items.insert(items.end(), side_.items.begin() + api.first, side_.items.begin() + api.first + api.count);
      api.first = first;
    }
    side_.items = std::move(items);
  }

  /// Moves the buffers out of the items, since they give no rows.
  void take_buffers() {
    const auto first = static_cast<std::ptrdiff_t>(side_.items.size());
    section("buffers", ".buffers", State::parameters);
    side_.buffers.insert(side_.buffers.end(), side_.items.begin() + first, side_.items.end());
    side_.items.erase(side_.items.begin() + first, side_.items.end());
  }

  void section(std::string_view key, std::string_view suffix, State state) {
    const Entry::Index node = entry_->find(0, key);
    if (node == Entry::kNone) return;
    state_ = state;
    const std::size_t length = path_.size();
    path_ += suffix;
    walk(node);
    path_.resize(length);
  }

  void walk(Entry::Index node) {
    const Entry& entry = *entry_;
    if (entry.is(node, NodeKind::null)) {
      add_null();
      note_place(node);
    } else if (entry.falsy(node)) {
      return;
    } else if (entry.is(node, NodeKind::array)) {
      std::size_t index = 0;
      entry.children(node, [&](Entry::Index child) { descend(child, std::to_string(index++)); });
    } else if (entry.is(node, NodeKind::object)) {
      const LeafMembers members = entry.find_all(node, kLeafKeys);
      if (entry.string(members[kClassType]) == kP2POp) {
        add_p2p(node);
        note_place(node);
      } else if (entry.is(members[kType], NodeKind::string)) {
        add_leaf(node, members);
        note_place(node);
      } else {
        entry.children(node, [&](Entry::Index child) { descend(child, entry.key(child)); });
      }
    }
  }

  void descend(Entry::Index child, std::string_view part) {
    const std::size_t length = path_.size();
    // The gradients of one parameter are in a list, and this level has no name.
    const bool nameless = state_ == State::parameters_grad && entry_->key(child).empty();
    if (!nameless) {
      path_ += '.';
      path_ += part;
    }
    walk(child);
    path_.resize(length);
  }

  /// The members of a leaf, which are found in one pass.
  enum LeafMember {
    kClassType,
    kType,
    kDtype,
    kShape,
    kFirstStatistic,
    kChecksum = kFirstStatistic + kStatistics,
    kGrad,
    kDataName,
    kValue,
    kPlacements,
    kTrueCount,
    kNegInfCount,
    kGradientOf,
    kMembers
  };
  static constexpr std::array<Entry::MemberKey, kMembers> kLeafKeys = {
      "class_type", "type",       "dtype",         "shape",         "Max",       "Min",
      "Mean",       "Norm",       "md5",           "requires_grad", "data_name", "value",
      "placements", "True_count", "Neg_inf_count", "gradient_of"};
  using LeafMembers = std::array<Entry::Index, kMembers>;

  std::uint32_t add_path_as_name() {
    if (path_.size() > name_budget_) {
      throw FormatError(display(side_.json), "the names of its rows need far more memory than the file: " +
                                                 display(path_.substr(0, kShownName)));
    }
    name_budget_ -= path_.size();
    return side_.pool.add(path_);
  }

  void note_place(Entry::Index node) {
    if (places_ != nullptr) places_->push_back(node);
  }

  Item& new_item() {
    Item& item = side_.items.emplace_back();
    item.api = api_index_;
    item.state = state_;
    return item;
  }

  void add_null() {
    const std::uint32_t name = add_path_as_name();
    const std::uint32_t none = side_.pool.intern("None");
    Item& item = new_item();
    item.name = name;
    item.dtype = none;
    item.shape = none;
  }

  void add_p2p(Entry::Index node) {
    const Entry::Index tensor = entry_->find(node, "tensor");
    if (tensor == Entry::kNone || entry_->find(tensor, "type") == Entry::kNone) {
      add_null();
    } else {
      add_leaf(tensor, entry_->find_all(tensor, kLeafKeys));
    }
    side_.transfers[side_.items.back().name] = {intern(entry_->find(node, "op")),
                                                intern(entry_->find(node, "peer"))};
  }

  void add_leaf(Entry::Index node, const LeafMembers& members) {
    const Entry& entry = *entry_;
    TextPool& pool = side_.pool;
    Item item;
    item.api = api_index_;
    item.state = state_;
    const std::string_view data_name = entry.string(members[kDataName]);
    if (data_name.empty()) {
      item.name = add_path_as_name();
    } else {
      item.data_name = pool.add(data_name);
      item.name = pool.add(data_name.substr(0, data_name.rfind('.')));
    }
    if (const Entry::Index grad = members[kGrad]; entry.is(grad, NodeKind::boolean)) {
      item.requires_grad = entry.boolean(grad) ? RequiresGrad::yes : RequiresGrad::no;
    }
    const Entry::Index md5 = members[kChecksum];
    const Entry::Index value = members[kValue];
    const bool recorded = md5 != Entry::kNone && !entry.is(md5, NodeKind::null);
    item.has_checksum = recorded ? is_checksum(members) : value != Entry::kNone;
    item.checksum = recorded                ? intern(md5)
                    : value == Entry::kNone ? checksum_of_nothing()
                                            : pool.intern(crc32_hex(entry.python_str(value)));
    if (const Entry::Index dtype = members[kDtype]; dtype != Entry::kNone) {
      item.is_tensor = true;
      item.dtype = intern(dtype);
      item.shape = intern(members[kShape]);
      for (std::size_t i = 0; i < kStatistics; ++i) {
        const Entry::Index statistic = members[kFirstStatistic + i];
        if (statistic != Entry::kNone) item.statistics.set(i, to_value(statistic));
      }
      for (const LeafMember count : {kTrueCount, kNegInfCount}) {
        const Entry::Index counted = members[count];
        if (!entry.is(counted, NodeKind::integer) || !(entry.number(counted) >= 0)) continue;
        side_.counts[item.name] = entry.number(counted);
      }
      if (members[kGradientOf] != Entry::kNone) side_.gradients_of[item.name] = intern(members[kGradientOf]);
      const Placement placement = placement_of(members[kPlacements]);
      if (placement.kind != Placement::PlacementKind::unknown) side_.placements[item.name] = placement;
    } else {
      describe_argument(item, node, entry.text(members[kType]), value);
    }
    side_.items.push_back(item);
  }

  static constexpr std::uint8_t kMasked =
      1;  // in place of an axis: what the ranks add up is not what they hold
  /// `[{"Shard": {"dim": 0}}]`, one for each axis of the mesh.
  Placement placement_of(Entry::Index list) const {
    const Entry& entry = *entry_;
    Placement found;
    if (!entry.is(list, NodeKind::array)) return found;
    bool known = true;
    entry.children(list, [&](Entry::Index each) {
      Placement one;
      if (!entry.is(each, NodeKind::object)) known = false;
      if (!known) return;
      entry.children(each, [&](Entry::Index kind) {
        if (entry.key(kind) == "Replicate") one.kind = Placement::PlacementKind::replicate;
        if (entry.key(kind) == "Partial" && entry.is(kind, NodeKind::object)) {
          const bool sum = entry.string(kind, "reduce_op") == "sum";
          one = {Placement::PlacementKind::partial, sum ? std::uint8_t{0} : kMasked};
        } else if (entry.key(kind).find("Partial") != std::string_view::npos) {
          one = {Placement::PlacementKind::partial, kMasked};
        }
        if (entry.key(kind) != "Shard" || !entry.is(kind, NodeKind::object)) return;
        const Entry::Index dim = entry.find(kind, "dim");
        constexpr double kMostAxes = 64;
        if (dim == Entry::kNone || !entry.is(dim, NodeKind::integer) || !(entry.number(dim) >= 0) ||
            entry.number(dim) >= kMostAxes)
          return;
        one = {Placement::PlacementKind::shard, static_cast<std::uint8_t>(entry.number(dim))};
      });
      const bool split = found.kind != Placement::PlacementKind::unknown &&
                         found.kind != Placement::PlacementKind::replicate;
      if (one.kind == Placement::PlacementKind::unknown ||
          (split && one.kind != Placement::PlacementKind::replicate))
        known = false;
      if (!split) found = one;
    });
    return known ? found : Placement();
  }

  /// The text that Python's `str()` makes of a value; `None` if the value is missing.
  std::uint32_t intern(Entry::Index node) {
    if (node == Entry::kNone) return side_.pool.intern("None");
    return entry_->is(node, NodeKind::string) ? side_.pool.intern(entry_->text(node))
                                              : side_.pool.intern(entry_->python_str(node));
  }

  /// Recorders write CRC-32, MD5 or SHA-1 of a tensor's content in hexadecimal digits, XOR with a
  /// prefix, or the number of a tensor of one element. CRC-32 is zero where there is no element to sum, and
  /// there alone.
  bool is_checksum(const LeafMembers& members) const {
    const Entry& entry = *entry_;
    constexpr std::array<std::size_t, 3> kDigits = {8, 32, 40};
    constexpr std::size_t kXorDigits = 16;
    const Entry::Index md5 = members[kChecksum];
    const Entry::Index shape = members[kShape];
    const bool is_tensor = members[kDtype] != Entry::kNone;
    if (!entry.is(md5, NodeKind::string))
      return entry.is_number(md5) && (!is_tensor || (entry.is(shape, NodeKind::array) && entry.empty(shape)));
    std::string_view digits = entry.text(md5);
    const bool prefixed = digits.starts_with("0x");
    if (prefixed) digits.remove_prefix(2);
    if (!std::ranges::all_of(digits, is_hex)) return false;
    if (prefixed) return digits.size() == kXorDigits;
    if (std::ranges::find(kDigits, digits.size()) == kDigits.end()) return false;
    return !is_tensor || digits.find_first_not_of('0') != std::string_view::npos || holds_no_element(shape);
  }

  bool holds_no_element(Entry::Index shape) const {
    bool none = false;
    if (!entry_->is(shape, NodeKind::array)) return none;
    entry_->children(shape, [&](Entry::Index size) {
      none = none || (entry_->is_number(size) && entry_->number(size) == 0);
    });
    return none;
  }

  std::uint32_t checksum_of_nothing() {
    if (checksum_of_nothing_ == 0) checksum_of_nothing_ = side_.pool.intern(crc32_hex(""));
    return checksum_of_nothing_;
  }

  /// Fills dtype, shape and statistics of a leaf that is not a tensor.
  void describe_argument(Item& item, Entry::Index node, std::string_view type, Entry::Index value) {
    const Entry& entry = *entry_;
    TextPool& pool = side_.pool;
    const std::string_view last = split_last(side_.name(item)).second;
    item.dtype = pool.intern(type);
    item.shape = pool.intern("[]");
    if (type == "torch.Size") {
      item.shape = intern(value);
    } else if (type == "slice") {
      item.shape = pool.intern(slice_shape(value));
    } else if (type == "ellipsis") {
      item.statistics.fill(RecordedValue::of_text(intern(value)));
    } else if (last == "src" || last == "dst" || last == "group_src" || last == "group_dst") {
      item.checksum = intern(value);
      item.statistics.fill(RecordedValue::of_text(item.checksum));
    } else if (type == "torch.ProcessGroup") {
      item.checksum = intern(entry.find(node, "group_ranks"));
      item.has_checksum = true;
      item.statistics.fill(RecordedValue::of_text(item.checksum));
    } else {
      const NodeKind kind = value == Entry::kNone ? NodeKind::null : entry.kind(value);
      item.dtype = pool.intern(fmt::format("<class '{}'>", python_type(kind)));
      item.statistics.fill(value == Entry::kNone ? RecordedValue{} : to_value(value));
    }
  }

  std::string slice_shape(Entry::Index value) const {
    if (!entry_->is(value, NodeKind::array)) return "()";
    std::size_t count = 0;
    entry_->children(value, [&](Entry::Index) { ++count; });
    return fmt::format("({},)", count);
  }

  RecordedValue to_value(Entry::Index node) {
    const Entry& entry = *entry_;
    switch (entry.kind(node)) {
      case NodeKind::null:
        return {};
      case NodeKind::boolean:
        return RecordedValue::of(entry.boolean(node));
      case NodeKind::real:
        return RecordedValue::of(entry.number(node));
      case NodeKind::integer: {
        const auto integer = entry.integer(node);
        return integer ? RecordedValue::of(*integer)
                       : RecordedValue::of_text(side_.pool.intern(entry.text(node)));
      }
      default:
        return RecordedValue::of_text(intern(node));
    }
  }

  /// Direct elements of lists and keys of objects alone (docs/rules.md, "By what dumps are compared").
  void look_for_md5() {
    const Entry& entry = *entry_;
    if (side_.has_md5 || state_ == State::debug || !entry.is(0, NodeKind::object)) return;
    entry.children(0, [&](Entry::Index section) {
      if (entry.is(section, NodeKind::object)) {
        side_.has_md5 = side_.has_md5 || entry.find(section, "md5") != Entry::kNone;
      } else if (entry.is(section, NodeKind::array)) {
        entry.children(section, [&](Entry::Index element) {
          side_.has_md5 = side_.has_md5 || entry.find(element, "md5") != Entry::kNone;
        });
      }
    });
  }

  /// Looks at every level of values that were saved by name.
  void look_for_md5_below(Entry::Index node) {
    const Entry& entry = *entry_;
    if (side_.has_md5) return;
    if (entry.is(node, NodeKind::object) && entry.find(node, "md5") != Entry::kNone) {
      side_.has_md5 = true;
    } else if (entry.is(node, NodeKind::object) || entry.is(node, NodeKind::array)) {
      entry.children(node, [&](Entry::Index child) { look_for_md5_below(child); });
    }
  }

  static constexpr std::size_t kShownName = 200;

  Side& side_;
  std::vector<Entry::Index>* places_;
  std::uint64_t name_budget_;
  const Entry* entry_ = nullptr;
  std::string path_;
  std::uint32_t api_index_ = 0;
  State state_ = State::input;
  bool duplicates_ = false;
  std::uint32_t checksum_of_nothing_ = 0;
  TextIndex known_;  // entries by name
};

/// A source that reports how many bytes are read from it.
class CountedSource final : public ByteSource {
 public:
  CountedSource(std::shared_ptr<const ByteSource> source, const std::function<void(std::uint64_t)>& on_bytes)
      : source_(std::move(source)), on_bytes_(on_bytes) {}
  std::uint64_t size() const override { return source_->size(); }
  const std::string& name() const override { return source_->name(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    source_->read_at(offset, out);
    on_bytes_(out.size());
  }

 private:
  std::shared_ptr<const ByteSource> source_;
  const std::function<void(std::uint64_t)>& on_bytes_;
};

void load_entries(Side& side, const ByteSource& json, const LoadOptions& options) {
  const CommunicationNames* const communication = options.communication;
  // Unused room costs only addresses, but a list that grows leaves holes.
  constexpr std::uint64_t kBytesPerItem = 128;  // real dumps have twice as many
  constexpr std::uint64_t kMostReserved = std::uint64_t{8} << 20;
  side.items.reserve(static_cast<std::size_t>(std::min(json.size() / kBytesPerItem, kMostReserved)));
  Flattener flattener(side, json.size());
  RankListPool rank_lists;
  Entry entry;
  side.header = read_values(json, [&](MemberStream& stream, std::string_view name) {
    Api place;
    place.size = static_cast<std::uint32_t>(stream.entry(entry, name).size());  // at most kMaxEntryMemory
    place.offset = stream.value_offset();
    flattener.add_entry(name, entry, place);
    if (options.on_entry) options.on_entry(name, place.offset, place.size);
    if (communication != nullptr && communication->has(name))
      side.calls.insert_or_assign(std::string(name), read_comm_call(entry, rank_lists));
  });
  flattener.finish();
}

}  // namespace

Side load_side(const ByteSource& json, const CommunicationNames* communication) {
  Side side;
  side.json = json.name();
  LoadOptions options;
  options.communication = communication;
  load_entries(side, json, options);
  return side;
}

EntryItems items_of(std::string_view name, const Entry& entry, std::uint64_t size, const std::string& file) {
  EntryItems items;
  items.side.json = file;
  Flattener(items.side, size, &items.places).add_entry(name, entry, {});
  return items;
}

std::string tensor_directory_of(const RankDump& rank) {
  return rank.directory + "/dump_tensor_data";
}

Side load_side(const RankDump& rank, const LoadOptions& options) {
  Side side;
  side.json = rank.json;
  side.tensor_directory = tensor_directory_of(rank);
  std::shared_ptr<const ByteSource> json = open_file(rank.json);
  if (options.on_bytes) json = std::make_shared<CountedSource>(std::move(json), options.on_bytes);
  load_entries(side, *json, options);
  if (options.stacks) {
    side.stack_json = options.stack_json.empty() ? rank.directory + "/stack.json" : options.stack_json;
    // The stack.json next to the dump.json may be missing.
    if (options.stack_json.empty()) {
      side.stacks = read_stacks_if_any(side.stack_json);
    } else {
      side.stacks = read_stack_json(*open_file(side.stack_json));
    }
  }
  return side;
}

}  // namespace msprobe::dump
