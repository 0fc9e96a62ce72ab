// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/lone_contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "checkpoint/line_hash.hpp"
#include "checkpoint/metrics.hpp"
#include "checkpoint/pieces.hpp"
#include "checkpoint/rounding.hpp"
#include "support/text.hpp"
#include "tensor/element_feed.hpp"

namespace msprobe::checkpoint {
namespace {

using tensor::DType;

// A vector has no rows, so this many of its elements count as one row.
constexpr std::int64_t kVectorRow = 16;
// The first elements are enough to find a long row.
constexpr std::size_t kMostOfRow = 4096;
constexpr std::size_t kMostAlike = 8;

/// A hash of the row, rounded to the narrowest type in use, so that copies in other types have the same hash.
std::optional<std::uint64_t> row_key(const Parameter& parameter, std::int64_t row) {
  const std::int64_t rows = parameter.shape.size() == 1 ? kVectorRow : 1;
  if (row + rows > parameter.shape[0]) return {};
  return if_readable([&]() -> std::optional<std::uint64_t> {
    tensor::ElementFeed<double, ParameterReader> feed(narrow(parameter, 0, row, rows));
    const auto count = std::min<std::size_t>(kMostOfRow, static_cast<std::size_t>(feed.remaining()));
    const std::span<const double> values = feed.next(count);
    if (std::ranges::all_of(values, [&](double value) { return value == values[0]; })) return {};
    std::vector<double> rounded(values.begin(), values.end());
    for (double& value : rounded) value = rounded_to(value, DType::bfloat16);
    OrderedHash hash;
    each_mixed(std::span<const double>(rounded),
               [&](std::span<const std::uint64_t> some) { hash.add_mixed(some); });
    return hash.value();
  });
}

/// Says how the two are the same; returns nothing if they are not.
std::optional<std::string> sameness(const Parameter& a, const Parameter& b,
                                    const std::function<void(std::uint64_t)>& on_bytes = {}) {
  return if_readable([&]() -> std::optional<std::string> {
    const PairMetrics metrics = measure(a, b, {.ulp = false, .counts = false, .on_bytes = on_bytes});
    if (metrics.bitwise_equal || metrics.unequal == 0) return "";
    return metrics.unrounded.holds() ? std::optional(", rounded") : std::nullopt;
  });
}

struct LoneSide {
  LoneSide(const std::vector<Parameter>& all, bool second) : is_second(second) {
    for (const Parameter& parameter : all) {
      const bool has_rows = !parameter.shape.empty() && parameter.numel() >= kVectorRow;
      if (!has_rows || !is_floating(parameter.dtype)) continue;
      const auto key = row_key(parameter, 0);
      if (!key) continue;
      by_key[*key].push_back(parameters.size());
      parameters.push_back(&parameter);
      keys.push_back(*key);
    }
    taken.resize(parameters.size());
  }

  std::string name(std::size_t i) const {
    return display(parameters[i]->name) + (is_second ? " in the second" : " in the first");
  }

  /// Parameters that begin with this row, have rows of that shape, and are not explained yet.
  std::vector<std::size_t> beginning_with(std::uint64_t key, const Shape& shape) const {
    std::vector<std::size_t> found;
    const auto all = by_key.find(key);
    if (all == by_key.end()) return found;
    for (const std::size_t i : all->second) {
      const Shape& other = parameters[i]->shape;
      const bool alike =
          other.size() == shape.size() && std::equal(other.begin() + 1, other.end(), shape.begin() + 1);
      if (alike && !taken[i] && found.size() < kMostAlike) found.push_back(i);
    }
    return found;
  }

  bool is_second;
  std::vector<const Parameter*> parameters;
  std::vector<std::uint64_t> keys;
  std::vector<bool> taken;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_key;
};

class LoneFinder {
 public:
  LoneFinder(const std::vector<Parameter>& first, const std::vector<Parameter>& second,
             const std::function<void(std::uint64_t)>& on_bytes)
      : first_(first, false), second_(second, true), on_bytes_(on_bytes) {}

  LoneContents run() {
    for (std::size_t i = 0; i < first_.parameters.size(); ++i) find_same(i);
    find_parts(first_, second_);
    find_parts(second_, first_);
    return std::move(found_);
  }

 private:
  void find_same(std::size_t i) {
    const Parameter& ours = *first_.parameters[i];
    for (const std::size_t k : second_.beginning_with(first_.keys[i], ours.shape)) {
      if (second_.parameters[k]->shape != ours.shape) continue;
      const auto how = sameness(ours, *second_.parameters[k], on_bytes_);
      if (!how) continue;
      first_.taken[i] = true;
      second_.taken[k] = true;
      found_[{false, ours.name}] = fmt::format("the same as {}{}", second_.name(k), *how);
      return;
    }
  }

  /// Finds parameters that consist of others, one below the other.
  void find_parts(LoneSide& wholes, LoneSide& parts) {
    for (std::size_t i = 0; i < wholes.parameters.size(); ++i) {
      const Parameter& whole = *wholes.parameters[i];
      std::int64_t begin = 0;
      while (!wholes.taken[i] && begin < whole.shape[0]) {
        const auto key = begin == 0 ? std::optional(wholes.keys[i]) : row_key(whole, begin);
        const std::int64_t rows = key ? add_part(wholes, i, parts, *key, begin) : 0;
        if (rows == 0) break;
        begin += rows;
      }
    }
  }

  /// Returns the number of rows of the part that begins here; 0 if no part fits.
  std::int64_t add_part(const LoneSide& wholes, std::size_t i, LoneSide& parts, std::uint64_t key,
                        std::int64_t begin) {
    const Parameter& whole = *wholes.parameters[i];
    for (const std::size_t k : parts.beginning_with(key, whole.shape)) {
      const Parameter& part = *parts.parameters[k];
      const std::int64_t rows = part.shape[0];
      if (rows > whole.shape[0] - begin || rows == whole.shape[0]) continue;
      const auto how = sameness(narrow(whole, 0, begin, rows), part, on_bytes_);
      if (!how) continue;
      parts.taken[k] = true;
      found_[{parts.is_second, part.name}] =
          fmt::format("rows {} to {} of {}{}", begin, begin + rows - 1, wholes.name(i), *how);
      return rows;
    }
    return 0;
  }

  LoneSide first_;
  LoneSide second_;
  const std::function<void(std::uint64_t)>& on_bytes_;
  LoneContents found_;
};

/// True if all elements are equal: any slice of such a parameter equals any other.
bool is_constant(const Parameter& parameter) {
  return with_work_type(parameter, parameter, [&]<typename T>(T) {
    tensor::ElementFeed<T, ParameterReader> feed(
        parameter, is_complex(parameter.dtype) ? tensor::Parts::complex : tensor::Parts::as_stored);
    std::optional<T> first;
    while (feed.remaining() > 0) {
      check_interrupt();
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(feed.remaining(), kPiece));
      for (const T value : feed.next(count)) {
        if (!first) first = value;
        if (value != *first) return false;
      }
    }
    return true;
  });
}

}  // namespace

std::string find_slice(const Parameter& first, const Parameter& second) {
  const Shape& a = first.shape;
  const Shape& b = second.shape;
  if (a.size() != b.size() || a.empty()) return {};
  const auto axis = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  if (axis == a.size() || !std::equal(a.begin() + static_cast<std::ptrdiff_t>(axis) + 1, a.end(),
                                      b.begin() + static_cast<std::ptrdiff_t>(axis) + 1))
    return {};
  const bool is_first = a[axis] < b[axis];
  const Parameter& part = is_first ? first : second;
  const Parameter& whole = is_first ? second : first;
  const std::int64_t length = part.shape[axis];
  if (part.numel() < kVectorRow || is_constant(part)) return {};
  const bool is_column = a.size() == 2 && axis == 1;
  const char* const lines = axis == 0 ? "rows" : is_column ? "columns" : "elements";
  for (const std::int64_t begin : {std::int64_t{0}, whole.shape[axis] - length}) {
    const auto how = sameness(narrow(whole, axis, begin, length), part);
    if (!how) continue;
    return fmt::format("the {} is {} {} to {}{} of the {}{}", is_first ? "first" : "second", lines, begin,
                       begin + length - 1, axis == 0 || is_column ? "" : fmt::format(" of axis {}", axis),
                       is_first ? "second" : "first", *how);
  }
  return {};
}

LoneContents find_lone_contents(const std::vector<Parameter>& first, const std::vector<Parameter>& second,
                                const std::function<void(std::uint64_t)>& on_bytes) {
  return LoneFinder(first, second, on_bytes).run();
}

}  // namespace msprobe::checkpoint
