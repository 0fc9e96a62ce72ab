// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/packed_weight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"
#include "tensor/element_feed.hpp"

namespace msprobe::checkpoint {
namespace {

/// Half of the wider gap beside each of the values, which come in any order; NaN for values that are not
/// finite.
std::vector<float> half_gaps_of(const std::vector<float>& values) {
  std::vector<float> sorted;
  std::ranges::copy_if(values, std::back_inserter(sorted), [](float value) { return std::isfinite(value); });
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<float> gaps;
  for (const float value : values) {
    const auto at = std::ranges::lower_bound(sorted, value);
    float gap = 0;
    if (at != sorted.end() && at != sorted.begin()) gap = value - *std::prev(at);
    if (at != sorted.end() && std::next(at) != sorted.end()) gap = std::max(gap, *std::next(at) - value);
    gaps.push_back(std::isfinite(value) ? gap / 2 : std::numeric_limits<float>::quiet_NaN());
  }
  return gaps;
}

/// Decoded bytes at any offset. If the offsets rise, the codes are read once from front to back.
class DecodedBytes final : public ByteSource {
 public:
  DecodedBytes(std::shared_ptr<const PackedWeight> packed, bool half_steps)
      : packed_(std::move(packed)),
        half_steps_(half_steps),
        scales_(packed_->load_scales()),
        name_(packed_->codes.name) {
    const auto lines =
        static_cast<std::uint64_t>((packed_->rows + packed_->scale_rows - 1) / packed_->scale_rows);
    const std::uint64_t wanted = lines * static_cast<std::uint64_t>(scales_.groups);
    const auto fits = [&](const std::vector<float>& list) { return list.empty() || list.size() == wanted; };
    const bool complete = scales_.scales.size() == wanted && fits(scales_.errors) && fits(scales_.zeros);
    const bool all_columns =
        scales_.group_of_column.empty()
            ? (packed_->columns + packed_->scale_columns - 1) / packed_->scale_columns <= scales_.groups
            : static_cast<std::int64_t>(scales_.group_of_column.size()) == packed_->columns &&
                  std::ranges::all_of(scales_.group_of_column, [&](std::int32_t group) {
                    return group >= 0 && group < scales_.groups;
                  });
    if (!complete || !all_columns) throw FormatError(display(name_), "its scales do not fit its codes");
  }

  std::uint64_t size() const override {
    return static_cast<std::uint64_t>(packed_->rows * packed_->columns) * sizeof(float);
  }
  const std::string& name() const override { return name_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size(), name_);
    const std::lock_guard lock(mutex_);
    while (!out.empty()) {
      const auto element = static_cast<std::int64_t>(offset / sizeof(float));
      const std::size_t skip = offset % sizeof(float);
      const std::int64_t row = element / packed_->columns;
      const std::int64_t column = element % packed_->columns;
      const auto wanted = static_cast<std::int64_t>((skip + out.size() + sizeof(float) - 1) / sizeof(float));
      const std::int64_t count = std::min({wanted, packed_->columns - column, kMostDecoded});
      decode(row, column, count);
      const std::size_t bytes = std::min(out.size(), static_cast<std::size_t>(count) * sizeof(float) - skip);
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values_.data()) + skip, bytes);
      out = out.subspan(bytes);
      offset += bytes;
    }
  }

 private:
  static constexpr std::int64_t kMostDecoded = std::int64_t{64} << 10;

  /// Fetches the bytes with the codes of these columns into `codes_`.
  void fetch(std::int64_t row, std::int64_t first_byte, std::int64_t count) const {
    const std::int64_t at = row * packed_->row_bytes + first_byte;
    codes_.resize(static_cast<std::size_t>(count));
    if (reader_ == nullptr || at != next_) {
      const Parameter& codes = packed_->codes;
      const auto item = static_cast<std::int64_t>(tensor::info(codes.dtype).size);
      // Readers of parameters can start only at a row.
      const std::int64_t row_size = codes.numel() / std::max<std::int64_t>(codes.shape.at(0), 1) * item;
      const std::int64_t start = at / row_size;
      reader_ = std::make_unique<ParameterReader>(narrow(codes, 0, start, codes.shape[0] - start));
      spare_.clear();
      next_ = start * row_size;
      while (next_ < at) {
        const auto step = static_cast<std::size_t>(std::min<std::int64_t>(at - next_, kMostDecoded));
        skipped_.resize(step);
        take(skipped_);
      }
    }
    take(codes_);
  }

  /// Takes the next bytes. The reader gives whole elements, so the rest is kept.
  void take(std::span<std::byte> out) const {
    next_ += static_cast<std::int64_t>(out.size());
    const std::size_t had = std::min(out.size(), spare_.size());
    std::copy_n(spare_.begin(), had, out.begin());
    spare_.erase(spare_.begin(), spare_.begin() + static_cast<std::ptrdiff_t>(had));
    out = out.subspan(had);
    const std::size_t item = tensor::info(packed_->codes.dtype).size;
    const std::size_t even = out.size() / item * item;
    if (even > 0) reader_->read(out.first(even));
    out = out.subspan(even);
    if (out.empty()) return;
    spare_.resize(item);
    reader_->read(spare_);
    std::copy_n(spare_.begin(), out.size(), out.begin());
    spare_.erase(spare_.begin(), spare_.begin() + static_cast<std::ptrdiff_t>(out.size()));
  }

  void decode(std::int64_t row, std::int64_t column, std::int64_t count) const {
    const int bits = packed_->bits;
    const int turn = packed_->high_first ? 8 - bits : 0;
    const std::int64_t first_byte = column * bits / 8;
    fetch(row, first_byte, ((column + count) * bits - 1) / 8 - first_byte + 1);
    values_.resize(static_cast<std::size_t>(count));
    const auto line = static_cast<std::size_t>(row / packed_->scale_rows * scales_.groups);
    const std::vector<float>& levels = packed_->levels->values;
    const std::vector<float>& gaps = packed_->levels->half_gaps;
    const unsigned mask = (1U << bits) - 1;
    const bool in_order = scales_.group_of_column.empty();
    std::int64_t i = 0;
    while (i < count) {
      const std::int64_t at = column + i;
      const std::int64_t group =
          in_order ? at / packed_->scale_columns : scales_.group_of_column[static_cast<std::size_t>(at)];
      const std::int64_t end =
          in_order ? std::min(count, (group + 1) * packed_->scale_columns - column) : i + 1;
      const std::size_t index = line + static_cast<std::size_t>(group);
      const float scale = scales_.scales[index];
      const float zero = scales_.zeros.empty() ? 0 : scales_.zeros[index];
      const float error = scales_.errors.empty() ? 0 : scales_.errors[index];
      const auto at_bits = [&](std::int64_t k) -> unsigned {
        const std::int64_t bit = (column + k) * bits;
        const auto byte = static_cast<std::size_t>(bit / 8 - first_byte);
        unsigned two = std::to_integer<unsigned>(codes_[byte]);
        if (byte + 1 < codes_.size()) two |= std::to_integer<unsigned>(codes_[byte + 1]) << 8;
        return (two >> ((bit % 8) ^ turn)) & mask;
      };
      const auto at_byte = [&](std::int64_t k) {
        return std::to_integer<unsigned>(codes_[static_cast<std::size_t>(k)]);
      };
      const auto fill = [&](const auto& code_of) {
        float* out = values_.data();
        if (!half_steps_) {
          for (; i < end; ++i) out[i] = (levels[code_of(i)] - zero) * scale;
          return;
        }
        const float wide = std::fabs(scale) + error;
        for (; i < end; ++i) {
          const unsigned code = code_of(i);
          out[i] = gaps[code] * wide + std::fabs(levels[code] - zero) * error;
        }
      };
      if (bits == 8) {
        fill(at_byte);
      } else {
        fill(at_bits);
      }
    }
  }

  std::shared_ptr<const PackedWeight> packed_;
  bool half_steps_;
  Scales scales_;
  std::string name_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<ParameterReader> reader_;
  mutable std::int64_t next_ = 0;  // byte of the codes that the reader is at
  mutable std::vector<std::byte> spare_;
  mutable std::vector<std::byte> skipped_;
  mutable std::vector<std::byte> codes_;
  mutable std::vector<float> values_;
};

using tensor::DType;

// A tensor of more elements does not hold scales.
constexpr std::int64_t kMostScales = std::int64_t{1} << 26;

std::vector<std::uint32_t> words_of(const Parameter& parameter) {
  if (parameter.dtype != DType::int32) {
    throw FormatError(display(parameter.name), fmt::format("{} where words of 32 bits are expected",
                                                           tensor::info(parameter.dtype).name));
  }
  std::vector<std::uint32_t> words(static_cast<std::size_t>(parameter.numel()));
  ParameterReader(parameter).read(std::as_writable_bytes(std::span(words)));
  return words;
}

/// The order of the 4-bit numbers that AutoAWQ packs in a word.
constexpr std::array<int, 8> kAwqOrder = {0, 2, 4, 6, 1, 3, 5, 7};

/// AutoAWQ's words, 4 bits along the outputs, as codes along the inputs.
formats::StoredTensor codes_of(const Parameter& parameter) {
  const std::int64_t inputs = parameter.shape[0];
  const std::int64_t outputs = parameter.shape[1] * 8;
  const std::vector<std::uint32_t> words = words_of(parameter);
  std::vector<std::byte> codes(static_cast<std::size_t>(outputs * inputs / 2));
  for (std::int64_t i = 0; i < inputs; ++i) {
    for (std::int64_t j = 0; j < parameter.shape[1]; ++j) {
      const std::uint32_t word = words[static_cast<std::size_t>(i * parameter.shape[1] + j)];
      for (std::size_t k = 0; k < kAwqOrder.size(); ++k) {
        const std::int64_t output = 8 * j + kAwqOrder[k];
        const auto code = static_cast<std::byte>((word >> (4 * k)) & 15U);
        codes[static_cast<std::size_t>((output * inputs + i) / 2)] |= i % 2 == 0 ? code : code << 4;
      }
    }
  }
  formats::StoredTensor tensor;
  tensor.dtype = DType::uint8;
  tensor.shape = {outputs, inputs / 2};
  tensor.strides = formats::row_major_strides(tensor.shape);
  tensor.storage = memory_source(std::move(codes), parameter.name);
  return tensor;
}

}  // namespace

Levels integer_levels(int bits, float least, bool is_signed) {
  Levels levels;
  const int count = 1 << bits;
  for (int code = 0; code < count; ++code) {
    const int value = is_signed && code >= count / 2 ? code - count : code;
    levels.values.push_back(static_cast<float>(value) + least);
  }
  levels.half_gaps.assign(levels.values.size(), 0.5F);
  return levels;
}

Levels float8_levels(tensor::DType dtype) {
  std::array<std::byte, 256> codes;
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  std::vector<float> values(codes.size());
  tensor::to_float(dtype, codes, values);
  return table_levels(std::move(values));
}

Levels float4_levels() {
  std::vector<float> values = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (std::size_t i = 0; i < 8; ++i) values.push_back(-values[i]);
  Levels levels = table_levels(std::move(values));
  // The largest number of a block decides its scale, a power of two: 6 also stands for numbers below 8.
  levels.half_gaps[7] = 2;
  levels.half_gaps[15] = 2;
  return levels;
}

Levels table_levels(std::vector<float> values) {
  Levels levels;
  levels.half_gaps = half_gaps_of(values);
  levels.values = std::move(values);
  return levels;
}

Parameter decoded(const std::string& name, PackedWeight packed, std::uint64_t memory) {
  const auto bytes = static_cast<std::int64_t>(tensor::info(packed.codes.dtype).size) * packed.codes.numel();
  const std::int64_t needed = (packed.columns * packed.bits + 7) / 8;
  if (packed.codes.shape.empty() || packed.columns <= 0 || packed.rows <= 0 || packed.row_bytes < needed ||
      bytes / packed.rows != packed.row_bytes ||
      checked_numel(packed.shape, name) != packed.rows * packed.columns)
    throw FormatError(display(name), "its codes do not fit its shape");
  const auto shared = std::make_shared<const PackedWeight>(std::move(packed));
  return computed(
      name, shared->shape,
      [shared](bool half_steps) { return std::make_shared<const DecodedBytes>(shared, half_steps); }, memory);
}

std::vector<float> floats_of(const Parameter& parameter) {
  if (parameter.numel() > kMostScales)
    throw FormatError(display(parameter.name), "refused: more elements than scales have");
  tensor::ElementFeed<double, ParameterReader> feed(parameter);
  const auto values = feed.next(static_cast<std::size_t>(parameter.numel()));
  std::vector<float> floats(values.size());
  std::ranges::transform(values, floats.begin(), [](double value) { return static_cast<float>(value); });
  return floats;
}

std::int64_t index_of(float value) {
  return value >= 0 && value <= 1e9F ? static_cast<std::int64_t>(value) : -1;
}

std::vector<std::int32_t> groups_of(const Parameter& parameter) {
  std::vector<std::int32_t> groups;
  for (const float group : floats_of(parameter)) groups.push_back(static_cast<std::int32_t>(index_of(group)));
  return groups;
}

Scales scales_of(const Parameter& parameter, std::int64_t groups) {
  Scales scales;
  scales.scales = floats_of(parameter);
  scales.groups = groups;
  const auto unit = static_cast<float>(tensor::unit_roundoff(parameter.dtype));
  for (const float scale : scales.scales) scales.errors.push_back(std::fabs(scale) * unit);
  return scales;
}

std::vector<float> unpacked(const Parameter& parameter, int bits, WordOrder order) {
  if (parameter.numel() > kMostScales)
    throw FormatError(display(parameter.name), "refused: more elements than zero points have");
  const int per_word = 32 / bits;
  const std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
  std::vector<float> values;
  if (32 % bits != 0) {
    std::uint64_t waiting = 0;
    int count = 0;  // of its bits
    for (const std::uint32_t word : words_of(parameter)) {
      waiting |= std::uint64_t{word} << count;
      for (count += 32; count >= bits; count -= bits, waiting >>= bits)
        values.push_back(static_cast<float>(waiting & mask));
    }
    return values;
  }
  for (const std::uint32_t word : words_of(parameter)) {
    const std::size_t begin = values.size();
    values.resize(begin + static_cast<std::size_t>(per_word));
    for (int i = 0; i < per_word; ++i) {
      const int place = order == WordOrder::awq ? kAwqOrder[static_cast<std::size_t>(i)] : i;
      values[begin + static_cast<std::size_t>(place)] = static_cast<float>((word >> (i * bits)) & mask);
    }
  }
  return values;
}

std::vector<float> exchanged(const std::vector<float>& matrix, std::int64_t rows, std::int64_t columns) {
  std::vector<float> result(matrix.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j)
      result[static_cast<std::size_t>(j * rows + i)] = matrix[static_cast<std::size_t>(i * columns + j)];
  }
  return result;
}

Parameter awq_codes(const Parameter& words) {
  return whole(words.name, DType::uint8, {words.shape[1] * 8, words.shape[0] / 2},
               [words] { return codes_of(words); });
}

}  // namespace msprobe::checkpoint
