// SPDX-License-Identifier: Apache-2.0
// A value of a configuration as Python knows it: the result of reading JSON, YAML, shell scripts and printed
// dictionaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/entry.hpp"

namespace msprobe::pack {

/// No reader makes values that are nested deeper, so recursion over a value is safe.
inline constexpr int kMaxValueDepth = 256;

class PackValue {
 public:
  enum class Type : std::uint8_t { null, boolean, integer, real, text, list, map };

  PackValue() = default;
  static PackValue of(bool value);
  static PackValue of(double value);
  static PackValue of(std::int64_t value);
  /// A whole number of any size; `digits` as Python prints them.
  static PackValue of_integer(std::string digits);
  static PackValue of_text(std::string text);
  static PackValue list() { return PackValue(Type::list); }
  static PackValue map() { return PackValue(Type::map); }

  Type kind() const { return kind_; }
  bool is(Type kind) const { return kind_ == kind; }
  bool is_container() const { return kind_ == Type::list || kind_ == Type::map; }
  bool is_number() const { return kind_ == Type::integer || kind_ == Type::real; }

  bool boolean() const { return boolean_; }
  /// The value of a number.
  double number() const;
  /// Text, or the digits of an integer.
  const std::string& text() const { return text_; }

  /// Elements of a list, values of a map.
  const std::vector<PackValue>& items() const { return items_; }
  std::vector<PackValue>& items() { return items_; }
  /// The keys of a map, one for each item.
  const std::vector<std::string>& keys() const { return keys_; }
  const PackValue* find(std::string_view key) const;

  /// Appends to a text.
  void extend(std::string_view more) { text_ += more; }
  void push(PackValue item) { items_.push_back(std::move(item)); }
  void push(std::string key, PackValue item);
  /// Resolves duplicate keys as Python does: the place of the first, the value of the last.
  void settle();

 private:
  explicit PackValue(Type kind) : kind_(kind) {}

  Type kind_ = Type::null;
  bool boolean_ = false;
  double real_ = 0;
  std::string text_;
  std::vector<PackValue> items_;
  std::vector<std::string> keys_;
};

/// Names with values, in the order in which the names occurred.
class FlatMap {
 public:
  using Item = std::pair<std::string, PackValue>;

  const std::vector<Item>& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  const PackValue* find(const std::string& name) const;
  PackValue* find(const std::string& name);
  void set(std::string name, PackValue value);

 private:
  std::vector<Item> items_;
  std::unordered_map<std::string, std::size_t> index_;
};

/// Do both have the same kind and equal items, compared by position, or in maps by key?
bool equal_items(const PackValue& a, const PackValue& b,
                 bool (*equal)(const PackValue& a, const PackValue& b));

/// `repr()` of Python.
std::string python_repr(const PackValue& value);
/// `str()` of Python.
std::string python_str(const PackValue& value);

/// Appends the value as Python's json module writes it with this indent: only ASCII, bare NaN and Infinity.
void append_json(std::string& out, const PackValue& value, int indent, int level = 0);

/// The value of a JSON node. FormatError naming `file` if it is nested too deeply.
PackValue from_entry(const dump::Entry& entry, dump::Entry::Index node, const std::string& file,
                     int depth = 0);

}  // namespace msprobe::pack
