// SPDX-License-Identifier: Apache-2.0
// A pickle as plain data. Nothing of it is ever executed: a call of anything but a few container types
// becomes an object node, which records the function and the arguments.
//
// The values are nodes of one arena and refer to each other by handle, so that shared, deeply nested and
// cyclic structures cost nothing to hold and nothing to free. Code that walks them must bound the depth.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::formats {

/// A value of a Pickle.
enum class PickleRef : std::uint32_t {};
inline constexpr PickleRef kNoPickleRef{0xffffffff};

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  big_integer,  // beyond 64 bits; raw() gives its little-endian two's complement bytes
  real,
  text,
  bytes,
  tuple,
  list,
  set,
  dict,
  global,      // a name; the named object is never loaded
  object,      // the result of a call that was not made
  persistent,  // something the pickle refers to by an id, such as a storage or a class
};

/// "a list", "an integer": for messages.
std::string_view kind_name(PickleKind kind);

/// A name that the pickle mentions. `called`: some object of the pickle would be the result of calling it.
/// Container types that msprobe evaluates itself (OrderedDict, set, torch.Size, …) do not count as called.
struct PickleGlobal {
  std::string module;
  std::string name;
  std::uint64_t offset = 0;  // of its first mention in the pickle
  bool called = false;
  // The pickle computes the name from results of calls, so reading cannot find it. An unknown module or name
  // is "?".
  bool computed = false;
  std::string full_name() const { return module + "." + name; }
};

/// The object that a REDUCE, NEWOBJ, OBJ or INST would have made. All members but `callable` and `args` may
/// be kNoPickleRef.
struct PickleObject {
  PickleRef callable = kNoPickleRef;  // a global, an object or a persistent value
  PickleRef args = kNoPickleRef;      // a tuple
  PickleRef kwargs = kNoPickleRef;    // a dict
  PickleRef state = kNoPickleRef;     // the value that BUILD would have set
  PickleRef items = kNoPickleRef;     // a list: the values appended or added to it
  PickleRef pairs = kNoPickleRef;     // a dict: the pairs set in it
};

/// The result of load_pickle(). An accessor that does not fit the kind of a value throws FormatError, since
/// the input decides which value has which kind.
class Pickle {
 public:
  PickleRef root() const { return root_; }
  /// The offset in the source after the STOP of the pickle.
  std::uint64_t end() const { return end_; }

  PickleKind kind(PickleRef ref) const { return node(ref).kind; }
  bool boolean(PickleRef ref) const;
  std::int64_t integer(PickleRef ref) const;
  double real(PickleRef ref) const;
  /// The bytes of a text: UTF-8 as the pickle has them, unchecked.
  std::string_view text(PickleRef ref) const;
  /// The bytes of a text, bytes or big_integer.
  std::string_view raw(PickleRef ref) const;
  /// The items of a tuple, list or set.
  std::span<const PickleRef> items(PickleRef ref) const;
  /// The pairs of a dict: key, value, key, value, … in the order they were set. A key may occur again; its
  /// last value counts.
  std::span<const PickleRef> pairs(PickleRef ref) const;
  /// The value at a text key of a dict. Takes time proportional to the size of the dict.
  std::optional<PickleRef> find(PickleRef dict, std::string_view key) const;
  const PickleGlobal& global(PickleRef ref) const;
  const PickleObject& object(PickleRef ref) const;
  /// The id of a persistent value.
  PickleRef persistent_id(PickleRef ref) const;

  /// Every name mentioned, in order of first mention.
  std::span<const PickleGlobal> globals() const { return globals_; }
  /// Every persistent value, in order.
  std::span<const PickleRef> persistents() const { return persistents_; }
  std::size_t size() const { return nodes_.size(); }
  /// The bytes that this pickle took from the allowance of its file.
  std::uint64_t memory() const { return memory_; }

 private:
  friend class PickleBuilder;

  struct PickleNode {
    PickleKind kind = PickleKind::none;
    std::uint32_t count = 0;  // text, bytes, big_integer: length; tuple: number of items
    std::uint64_t value = 0;  // the scalar itself, or where the rest is in the members below
  };

  const PickleNode& node(PickleRef ref) const { return nodes_[static_cast<std::uint32_t>(ref)]; }
  const PickleNode& expect(PickleRef ref, PickleKind kind) const;
  [[noreturn]] void wrong_kind(PickleRef ref, std::string_view wanted) const;

  std::string name_;
  // Members that grow in small steps are deques, so that growth never needs twice the memory.
  std::deque<PickleNode> nodes_;
  std::string characters_;                         // of texts and bytes
  std::vector<PickleRef> tuple_items_;             // of all tuples, end to end
  std::deque<std::vector<PickleRef>> containers_;  // of lists, sets and dicts
  std::deque<PickleObject> objects_;
  std::vector<PickleGlobal> globals_;
  std::vector<PickleRef> persistents_;
  PickleRef root_ = kNoPickleRef;
  std::uint64_t end_ = 0;
  std::uint64_t memory_ = 0;
};

}  // namespace msprobe::formats
