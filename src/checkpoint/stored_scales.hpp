// SPDX-License-Identifier: Apache-2.0
// Scales, zero points and codes as programs store them beside each other, as numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/packed_weight.hpp"
#include "checkpoint/parameter.hpp"

namespace msprobe::checkpoint {

/// All elements. Throws FormatError if there are more than scales have.
std::vector<float> floats_of(const Parameter& parameter);

/// A number of a file as an index; -1 if it is no index.
std::int64_t index_of(float value);
std::vector<std::int32_t> groups_of(const Parameter& parameter);

/// Scales as they are stored: the numbers that weights were divided by are within their rounding.
Scales scales_of(const Parameter& parameter, std::int64_t groups);

/// How words of 32 bits hold numbers: from the lowest bits on, or in the order of AutoAWQ.
enum class WordOrder : std::uint8_t { rising, awq };

/// Numbers of `bits` that are packed along the last axis of (rows, words); numbers of 3 bits cross from one
/// word into the next, and fill each row. Throws FormatError for a type other than int32.
std::vector<float> unpacked(const Parameter& parameter, int bits, WordOrder order);

/// A matrix of (rows, columns) as one of (columns, rows).
std::vector<float> exchanged(const std::vector<float>& matrix, std::int64_t rows, std::int64_t columns);

/// AutoAWQ's words (inputs, outputs / 8), 4 bits along the outputs, as bytes (outputs, inputs / 2). The
/// number of inputs is even.
Parameter awq_codes(const Parameter& words);

}  // namespace msprobe::checkpoint
