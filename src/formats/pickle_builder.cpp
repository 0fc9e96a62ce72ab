// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_builder.hpp"

#include <fmt/format.h>

namespace msprobe::formats {
namespace {

// A global takes the memory of many opcodes, and real data names far fewer.
constexpr std::size_t kMostGlobals = 100'000;
// A growing vector or string needs this multiple of its size, because it holds its old copy, too.
constexpr std::uint64_t kGrowth = 2;

}  // namespace

PickleBuilder::PickleBuilder(const PickleStream& stream, const ByteSource& source, const PickleLimits& limits)
    : stream_(stream), limits_(limits), allowance_(limits.file_size == 0 ? source.size() : limits.file_size) {
  pickle_.name_ = source.name();
}

void PickleBuilder::charge(std::uint64_t amount) {
  if (amount > limits_.max_opcodes - spent_)
    fail(fmt::format("refused: more than {} steps", limits_.max_opcodes));
  spent_ += amount;
}

void PickleBuilder::charge_memory(std::uint64_t bytes) {
  if (!allowance_.take(bytes)) fail("refused: its values need too much memory for a file of this size");
  pickle_.memory_ += bytes;
}

PickleRef PickleBuilder::add(PickleKind kind, std::uint64_t value, std::size_t count) {
  charge_memory(sizeof(Pickle::PickleNode));
  if (pickle_.nodes_.size() >= static_cast<std::uint32_t>(kNoPickleRef)) fail("too many values");
  pickle_.nodes_.push_back(
      Pickle::PickleNode{.kind = kind, .count = static_cast<std::uint32_t>(count), .value = value});
  return static_cast<PickleRef>(pickle_.nodes_.size() - 1);
}

/// Equal constants (None, booleans, small integers, the empty tuple) share one node.
PickleRef PickleBuilder::shared(PickleRef& known, PickleKind kind, std::uint64_t value) {
  if (known == kNoPickleRef) known = add(kind, value);
  return known;
}

PickleRef PickleBuilder::integer(std::int64_t value) {
  const bool common = value >= 0 && value < static_cast<std::int64_t>(small_.size());
  const auto bits = static_cast<std::uint64_t>(value);
  return common ? shared(small_[static_cast<std::size_t>(value)], PickleKind::integer, bits)
                : add(PickleKind::integer, bits);
}

PickleRef PickleBuilder::characters(PickleKind kind, std::string_view characters) {
  charge_memory(kGrowth * std::uint64_t{characters.size()});
  const std::size_t begin = pickle_.characters_.size();
  pickle_.characters_ += characters;
  return add(kind, begin, characters.size());
}

PickleRef PickleBuilder::tuple(std::span<const PickleRef> items) {
  if (items.empty()) return shared(empty_tuple_, PickleKind::tuple, 0);
  charge_memory(kGrowth * std::uint64_t{items.size_bytes()});
  const std::size_t begin = pickle_.tuple_items_.size();
  pickle_.tuple_items_.insert(pickle_.tuple_items_.end(), items.begin(), items.end());
  return add(PickleKind::tuple, begin, items.size());
}

PickleRef PickleBuilder::container(PickleKind kind, std::span<const PickleRef> items) {
  charge_memory(sizeof(std::vector<PickleRef>));
  charge_items(items.size(), true);
  pickle_.containers_.emplace_back(items.begin(), items.end());
  return add(kind, pickle_.containers_.size() - 1);
}

/// Charges the items of a container. Its first items need a memory block, too.
void PickleBuilder::charge_items(std::size_t count, bool first) {
  constexpr std::uint64_t kPiece = 32;
  if (count == 0) return;
  charge_memory((first ? kPiece : 0) + kGrowth * sizeof(PickleRef) * std::uint64_t{count});
}

PickleRef PickleBuilder::global(std::string module, std::string name, std::uint64_t offset) {
  PickleGlobal mention{.module = std::move(module), .name = std::move(name), .offset = offset};
  const auto [at, is_new] =
      global_index_.try_emplace(std::pair(mention.module, mention.name), pickle_.globals_.size());
  if (is_new) {
    if (at->second == kMostGlobals) fail(fmt::format("refused: more than {} names", kMostGlobals));
    charge_memory(kPickleGlobalBytes + 2 * (std::uint64_t{mention.module.size()} + mention.name.size()));
    pickle_.globals_.push_back(std::move(mention));
  }
  return add(PickleKind::global, at->second);
}

PickleRef PickleBuilder::call(PickleRef callable, PickleRef args, PickleRef kwargs) {
  if (kind(args) != PickleKind::tuple)
    fail(fmt::format("a call with {} for arguments", kind_name(kind(args))));
  if (kind(callable) == PickleKind::global) {
    PickleGlobal& callee = pickle_.globals_[static_cast<std::size_t>(pickle_.node(callable).value)];
    const std::string name = callee.full_name();
    const ContainerName* type = container_of_name(name);
    if (type != nullptr && kwargs == kNoPickleRef) return evaluate(*type, args);
    callee.called = true;
  } else if (kind(callable) != PickleKind::object && kind(callable) != PickleKind::persistent) {
    fail(fmt::format("it calls {}", kind_name(kind(callable))));
  }
  charge_memory(sizeof(PickleObject));
  pickle_.objects_.push_back(PickleObject{.callable = callable, .args = args, .kwargs = kwargs});
  return add(PickleKind::object, pickle_.objects_.size() - 1);
}

PickleRef PickleBuilder::evaluate(const ContainerName& type, PickleRef args) {
  auto given = pickle_.items(args);
  if (type.takes_factory && !given.empty()) given = given.subspan(1);
  std::vector<PickleRef> content;
  if (!given.empty()) {
    const PickleRef from = given[0];
    const bool mapping = type.container == PythonContainer::dict && kind(from) == PickleKind::dict;
    const auto items = mapping ? pickle_.pairs(from) : pickle_.items(from);
    charge(items.size());
    content.assign(items.begin(), items.end());
    if (type.container == PythonContainer::dict && !mapping) {
      charge(items.size());
      content.clear();
      for (const PickleRef item : items) {
        const auto pair = pickle_.items(item);
        if (pair.size() != 2) fail("a dict made of something other than pairs");
        content.insert(content.end(), pair.begin(), pair.end());
      }
    }
  }
  switch (type.container) {
    case PythonContainer::dict:
      return container(PickleKind::dict, content);
    case PythonContainer::set:
      return container(PickleKind::set, content);
    case PythonContainer::list:
      return container(PickleKind::list, content);
    case PythonContainer::tuple:
      break;
  }
  return tuple(content);
}

PickleRef PickleBuilder::persistent(PickleRef id) {
  const PickleRef made = add(PickleKind::persistent, static_cast<std::uint32_t>(id));
  charge_memory(kGrowth * sizeof(PickleRef));
  pickle_.persistents_.push_back(made);
  return made;
}

/// Returns the list of values appended to an object, or the dict of values set in it; creates it if it is
/// missing.
PickleRef PickleBuilder::part_of(PickleRef object, PickleRef PickleObject::*part, PickleKind part_kind) {
  const auto index = static_cast<std::size_t>(pickle_.node(object).value);
  if (pickle_.objects_[index].*part == kNoPickleRef) pickle_.objects_[index].*part = container(part_kind);
  return pickle_.objects_[index].*part;
}

void PickleBuilder::append(PickleRef target, std::span<const PickleRef> items) {
  auto& content = pickle_.containers_[static_cast<std::size_t>(pickle_.node(target).value)];
  charge_items(items.size(), content.empty());
  content.insert(content.end(), items.begin(), items.end());
}

void PickleBuilder::append_to(PickleRef target, std::span<const PickleRef> items, PickleKind wanted) {
  if (kind(target) == PickleKind::object)
    target = part_of(target, &PickleObject::items, PickleKind::list);
  else if (kind(target) != wanted)
    fail(fmt::format("it adds items to {}", kind_name(kind(target))));
  append(target, items);
}

void PickleBuilder::set_in(PickleRef target, std::span<const PickleRef> pairs) {
  if (pairs.size() % 2 != 0) fail("a key without a value");
  if (kind(target) == PickleKind::object)
    target = part_of(target, &PickleObject::pairs, PickleKind::dict);
  else if (kind(target) != PickleKind::dict)
    fail(fmt::format("it sets items of {}", kind_name(kind(target))));
  append(target, pairs);
}

void PickleBuilder::set_state(PickleRef target, PickleRef state) {
  switch (kind(target)) {
    case PickleKind::object: {
      // A second state would replace the first one and hide its effect.
      PickleRef& own = pickle_.objects_[static_cast<std::size_t>(pickle_.node(target).value)].state;
      if (own != kNoPickleRef) fail("it sets the state of an object twice");
      own = state;
      return;
    }
    // Attributes of containers (such as the _metadata of a state dict) hold no data.
    case PickleKind::dict:
    case PickleKind::list:
    case PickleKind::set:
      return;
    default:
      fail(fmt::format("it sets the state of {}", kind_name(kind(target))));
  }
}

Pickle PickleBuilder::finish(PickleRef root, std::uint64_t end) {
  pickle_.root_ = root;
  pickle_.end_ = end;
  return std::move(pickle_);
}

}  // namespace msprobe::formats
