// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/stored_scales.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "tensor/element_feed.hpp"

namespace msprobe::checkpoint {
namespace {

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
