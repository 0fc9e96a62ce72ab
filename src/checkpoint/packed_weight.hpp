// SPDX-License-Identifier: Apache-2.0
// A weight that is stored as small codes with scales beside them, read as the numbers that it represents.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/parameter.hpp"

namespace msprobe::checkpoint {

/// The numbers that the codes of a format represent before they are scaled.
struct Levels {
  std::vector<float> values;
  /// How far a number may be from the value that it was rounded to: half of the wider gap beside the value.
  std::vector<float> half_gaps;
};

/// Whole numbers from `least` on, 2^bits of them. `is_signed`: codes are two's complement.
Levels integer_levels(int bits, float least, bool is_signed);
/// The numbers of a floating-point type of one byte, by their bytes.
Levels float8_levels(tensor::DType dtype);
/// 4-bit numbers of two exponent bits and one fraction bit (OCP Microscaling Formats 1.0, E2M1).
Levels float4_levels();
/// Any numbers; the code of each is its index.
Levels table_levels(std::vector<float> values);

/// One number for each part of a matrix: element (row, column) has the number of line row / rows and group
/// column / columns.
struct Scales {
  std::vector<float> scales;
  std::vector<float> errors;  // how far each scale may be from the divisor of the weights; empty: 0
  std::vector<float> zeros;   // subtracted from a level before it is scaled; empty: 0
  std::int64_t groups = 1;    // in a line
  std::vector<std::int32_t> group_of_column;  // where columns are not in the order of their groups
};

struct PackedWeight {
  Shape shape;
  std::int64_t rows = 1;  // of the codes; shape has rows * columns elements
  std::int64_t columns = 0;
  int bits = 8;                          // 2, 3 (from the lowest bit of each row on), 4 or 8
  bool high_first = false;               // of the codes in a byte; of 2 and 4 bits
  std::int64_t row_bytes = 0;            // of the codes; may be more than columns need
  Parameter codes;                       // rows of row_bytes, of any type without padding
  std::shared_ptr<const Levels> levels;  // shared: a mixture has ten thousands of weights
  std::int64_t scale_rows = 1;
  std::int64_t scale_columns = 1;
  std::function<Scales()> load_scales;  // called whenever the weight is opened
};

/// The weight as float32, decoded while it is read, with its half step. Its shape is that of `packed`;
/// `memory` as in Block. Throws FormatError if codes and shape do not fit, and, while it is read, if the
/// scales do not fit.
Parameter decoded(const std::string& name, PackedWeight packed, std::uint64_t memory = 0);

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
