// SPDX-License-Identifier: Apache-2.0
// Checks whether the difference of two matrices has a low rank, as it has after an adapter (LoRA) was merged
// into one of them. A sample of its elements gives the rank; a skeleton of that many rows and columns must
// give all of it (Goreinov, Tyrtyshnikov and Zamarashkin 1997).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "checkpoint/parameter.hpp"

namespace msprobe::checkpoint {

/// Elements of a matrix at some of its rows and columns.
class MatrixSample {
 public:
  MatrixSample(std::int64_t rows, std::int64_t columns);

  bool wants_row(std::int64_t row) const { return row % row_step_ == 0 && row / row_step_ < kLines; }
  std::int64_t column_step() const { return column_step_; }
  void add(std::int64_t row, std::int64_t column, double value) {
    if (column % column_step_ == 0 && column / column_step_ < kLines)
      values_[static_cast<std::size_t>(row / row_step_ * kLines + column / column_step_)] = value;
  }

  struct Skeleton {
    std::vector<std::int64_t> rows;
    std::vector<std::int64_t> columns;
  };
  /// The rows and columns that span the sample, up to a rest below `noise`; nothing if that takes more than
  /// half of them.
  std::optional<Skeleton> skeleton(double noise) const;

 private:
  static constexpr std::int64_t kLines = 128;
  std::int64_t row_step_;
  std::int64_t column_step_;
  std::vector<double> values_;
};

/// True if the skeleton gives every element of `second - first`, up to `noise`. Both are matrices of
/// floating-point numbers of one shape.
bool is_spanned(const Parameter& first, const Parameter& second, const MatrixSample::Skeleton& skeleton,
                double noise);

}  // namespace msprobe::checkpoint
