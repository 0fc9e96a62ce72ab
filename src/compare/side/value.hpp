// SPDX-License-Identifier: Apache-2.0
// A statistic or argument as the Python tool would hold it in a cell, in 16 bytes; and the pool of texts
// behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace msprobe::compare {

/// Texts known by number; they stay where they are until the pool goes. Text 0 is the empty one.
class TextPool {
 public:
  TextPool();
  /// The number of an equal text, which is added if it is new.
  std::uint32_t intern(std::string_view text);
  /// Adds a text without looking for an equal one (row names: nearly all differ).
  std::uint32_t add(std::string_view text);
  std::string_view at(std::uint32_t id) const { return texts_[id]; }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 20;
  std::string_view keep(std::string_view text);

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t free_size_ = 0;
  std::vector<std::string_view> texts_;
  std::unordered_map<std::string_view, std::uint32_t> index_;
};

enum class ValueKind : std::uint8_t {
  missing,  // prints N/A: there is no such row
  none,     // prints None: not recorded
  boolean,
  integer,
  real,
  text,
};

struct Value {
  ValueKind kind = ValueKind::none;
  bool boolean = false;
  std::uint32_t text = 0;  // in the pool of its side
  union {
    std::int64_t integer = 0;
    double real;
  };

  static Value missing();
  static Value of(bool value);
  static Value of(std::int64_t value);
  static Value of(double value);
  static Value of_text(std::uint32_t id);
};
static_assert(sizeof(Value) == 16);

/// As the cell prints it; NaN in any spelling is `Nan`, infinities are `inf` and `-inf`.
std::string to_text(const Value& value, const TextPool& pool);

/// What a value counts as in the table of spec/compare.md 6.2.
enum class ValueClass { number, nan, inf, neg_inf, device, missing, other };

struct Classified {
  ValueClass type = ValueClass::other;
  double number = 0;        // for number
  bool is_integer = false;  // for number: `integer` is exact
  std::int64_t integer = 0;
};
Classified classify(const Value& value, const TextPool& pool);

}  // namespace msprobe::compare
