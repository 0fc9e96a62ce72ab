// SPDX-License-Identifier: Apache-2.0
// Hashes of the rows and columns of a tensor from a single read. They find lines in another order or place.
// Values are hashed as numbers: both zeros have one hash, and so have all NaN.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace msprobe::checkpoint {

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
inline std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

template <typename T>
std::uint64_t bits_of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    const double wide = static_cast<double>(value) + 0.0;
    return std::bit_cast<std::uint64_t>(wide == wide ? wide : std::numeric_limits<double>::quiet_NaN());
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

inline constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15ULL;

constexpr std::uint64_t hash_power(std::int64_t exponent) {
  std::uint64_t power = 1;
  std::uint64_t base = kHashFactor;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 != 0) power *= base;
  }
  return power;
}

/// A polynomial hash of values in their order: the hash of a whole follows from the hashes of its parts.
class OrderedHash {
 public:
  /// Adds values that went through mixed().
  void add_mixed(std::span<const std::uint64_t> values) {
    constexpr std::uint64_t k2 = hash_power(2);
    constexpr std::uint64_t k3 = hash_power(3);
    constexpr std::uint64_t k4 = hash_power(4);
    std::size_t i = 0;
    // Four at a time, because each multiplication waits for the one before.
    for (; i + 4 <= values.size(); i += 4) {
      value_ =
          value_ * k4 + (values[i] * k3 + values[i + 1] * k2 + values[i + 2] * kHashFactor + values[i + 3]);
    }
    for (; i < values.size(); ++i) value_ = value_ * kHashFactor + values[i];
  }
  /// Appends values with this hash; `power` is hash_power() of their number.
  void append(std::uint64_t hash, std::uint64_t power) { value_ = value_ * power + hash; }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

/// Calls `take(mixed values)` for a few hundred values at a time.
template <typename T, typename Take>
void each_mixed(std::span<const T> values, const Take& take) {
  std::array<std::uint64_t, 512> buffer;
  while (!values.empty()) {
    const std::size_t count = std::min(buffer.size(), values.size());
    for (std::size_t i = 0; i < count; ++i) buffer[i] = mixed(bits_of(values[i]) + 1);
    take(std::span<const std::uint64_t>(buffer.data(), count));
    values = values.subspan(count);
  }
}

/// Steps through elements that come in pieces of any size, row by row.
class RowWalk {
 public:
  explicit RowWalk(std::int64_t columns) : columns_(std::max<std::int64_t>(columns, 1)) {}

  /// Calls `take(row, column, begin, count)` for each part of a row in the next elements.
  template <typename Take>
  void advance(std::size_t size, const Take& take) {
    for (std::size_t begin = 0; begin < size;) {
      const std::size_t count = std::min(size - begin, static_cast<std::size_t>(columns_ - column_));
      take(row_, column_, begin, count);
      begin += count;
      column_ += static_cast<std::int64_t>(count);
      if (column_ < columns_) continue;
      column_ = 0;
      ++row_;
    }
  }

 private:
  std::int64_t columns_;
  std::int64_t row_ = 0;
  std::int64_t column_ = 0;
};

/// The hashes of one tensor.
class LineHashes {
 public:
  LineHashes(std::int64_t rows, std::int64_t columns, bool lines, bool with_columns)
      : columns_count_(columns), power_(hash_power(columns)), walk_(columns) {
    if (!lines) return;
    rows_.resize(static_cast<std::size_t>(rows));
    if (!with_columns) return;
    row_sets_.resize(rows_.size());
    columns_.resize(static_cast<std::size_t>(columns));
    column_sets_.resize(columns_.size());
  }

  template <typename T>
  void add(std::span<const T> values) {
    if (rows_.empty()) {
      each_mixed(values, [&](std::span<const std::uint64_t> some) { all_.add_mixed(some); });
      return;
    }
    walk_.advance(values.size(),
                  [&](std::int64_t row, std::int64_t column, std::size_t begin, std::size_t count) {
                    auto at = static_cast<std::size_t>(column);
                    each_mixed(values.subspan(begin, count), [&](std::span<const std::uint64_t> some) {
                      row_.add_mixed(some);
                      if (!columns_.empty()) add_columns(static_cast<std::size_t>(row), at, some);
                      at += some.size();
                    });
                    if (at < static_cast<std::size_t>(columns_count_)) return;
                    rows_[static_cast<std::size_t>(row)] = row_.value();
                    all_.append(row_.value(), power_);
                    row_ = {};
                  });
  }

  std::uint64_t all() const { return all_.value(); }
  /// One hash for each row; empty without `lines`.
  const std::vector<std::uint64_t>& rows() const { return rows_; }
  const std::vector<std::uint64_t>& columns() const { return columns_; }
  /// The same, but independent of the order of the elements within a line.
  const std::vector<std::uint64_t>& row_sets() const { return row_sets_; }
  const std::vector<std::uint64_t>& column_sets() const { return column_sets_; }

 private:
  void add_columns(std::size_t row, std::size_t at, std::span<const std::uint64_t> some) {
    std::uint64_t set = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      set += some[i];
      columns_[at + i] = columns_[at + i] * kHashFactor + some[i];
      column_sets_[at + i] += some[i];
    }
    row_sets_[row] += set;
  }

  std::int64_t columns_count_;
  std::uint64_t power_;
  RowWalk walk_;
  OrderedHash all_;
  OrderedHash row_;
  std::vector<std::uint64_t> rows_;
  std::vector<std::uint64_t> columns_;
  std::vector<std::uint64_t> row_sets_;
  std::vector<std::uint64_t> column_sets_;
};

}  // namespace msprobe::checkpoint
