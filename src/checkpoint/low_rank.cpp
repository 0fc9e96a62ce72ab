// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "checkpoint/pieces.hpp"

namespace msprobe::checkpoint {
namespace {

/// The inverse of a square matrix in row-major order, by elimination with pivots; nothing if it is singular.
std::optional<std::vector<double>> inverse(std::vector<double> matrix, std::size_t n) {
  std::vector<double> result(n * n);
  for (std::size_t i = 0; i < n; ++i) result[i * n + i] = 1;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i) {
      if (std::fabs(matrix[i * n + k]) > std::fabs(matrix[pivot * n + k])) pivot = i;
    }
    const double value = matrix[pivot * n + k];
    if (!(std::fabs(value) > 0)) return {};
    for (std::size_t j = 0; j < n; ++j) {
      std::swap(matrix[pivot * n + j], matrix[k * n + j]);
      std::swap(result[pivot * n + j], result[k * n + j]);
    }
    for (std::size_t j = 0; j < n; ++j) {
      matrix[k * n + j] /= value;
      result[k * n + j] /= value;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = matrix[i * n + k];
      if (i == k || factor == 0) continue;
      for (std::size_t j = 0; j < n; ++j) {
        matrix[i * n + j] -= factor * matrix[k * n + j];
        result[i * n + j] -= factor * result[k * n + j];
      }
    }
  }
  return result;
}

}  // namespace

MatrixSample::MatrixSample(std::int64_t rows, std::int64_t columns)
    : row_step_(std::max<std::int64_t>(1, rows / kLines)),
      column_step_(std::max<std::int64_t>(1, columns / kLines)),
      values_(static_cast<std::size_t>(kLines * kLines)) {}

std::optional<MatrixSample::Skeleton> MatrixSample::skeleton(double noise) const {
  std::vector<double> left = values_;
  Skeleton skeleton;
  // The update of an adapter ends abruptly at its rank, while that of a training fades into the noise.
  constexpr double kGap = 50;
  double least = 0;
  const auto at = [&](std::int64_t row, std::int64_t column) -> double& {
    return left[static_cast<std::size_t>(row * kLines + column)];
  };
  while (static_cast<std::int64_t>(skeleton.rows.size()) <= kLines / 2) {
    const auto largest = std::ranges::max_element(left, {}, [](double value) { return std::fabs(value); });
    if (!std::isfinite(*largest)) return {};
    if (std::fabs(*largest) <= noise) return least >= kGap * noise ? std::optional(skeleton) : std::nullopt;
    least = std::fabs(*largest);
    const std::int64_t row = (largest - left.begin()) / kLines;
    const std::int64_t column = (largest - left.begin()) % kLines;
    const double pivot = *largest;
    skeleton.rows.push_back(row * row_step_);
    skeleton.columns.push_back(column * column_step_);
    for (std::int64_t i = 0; i < kLines; ++i) {
      if (i == row) continue;
      const double factor = at(i, column) / pivot;
      for (std::int64_t j = 0; j < kLines; ++j) at(i, j) -= factor * at(row, j);
      at(i, column) = 0;
    }
    for (std::int64_t j = 0; j < kLines; ++j) at(row, j) = 0;
  }
  return {};
}

bool is_spanned(const Parameter& first, const Parameter& second, const MatrixSample::Skeleton& skeleton,
                double noise) {
  const std::size_t rank = skeleton.rows.size();
  const auto columns = static_cast<std::size_t>(first.numel() / first.shape[0]);
  // The rows of the difference that span it. Its columns are read together with each row.
  std::vector<double> spanning(rank * columns);
  for (std::size_t k = 0; k < rank; ++k) {
    std::size_t at = k * columns;
    each_pair(narrow(first, 0, skeleton.rows[k], 1), narrow(second, 0, skeleton.rows[k], 1),
              [&](double x, double y) { spanning[at++] = y - x; });
  }
  std::vector<double> core(rank * rank);
  for (std::size_t k = 0; k < rank; ++k) {
    for (std::size_t l = 0; l < rank; ++l)
      core[k * rank + l] = spanning[k * columns + static_cast<std::size_t>(skeleton.columns[l])];
  }
  const auto inverted = inverse(std::move(core), rank);
  if (!inverted) return false;
  std::vector<double> row(columns);
  std::vector<double> weights(rank);
  std::size_t filled = 0;
  bool all = true;
  const auto check_row = [&] {
    for (std::size_t k = 0; k < rank; ++k) {
      weights[k] = 0;
      for (std::size_t l = 0; l < rank; ++l)
        weights[k] += row[static_cast<std::size_t>(skeleton.columns[l])] * (*inverted)[l * rank + k];
    }
    for (std::size_t k = 0; k < rank; ++k) {
      for (std::size_t j = 0; j < columns; ++j) row[j] -= weights[k] * spanning[k * columns + j];
    }
    all = std::ranges::all_of(row, [&](double value) { return std::fabs(value) <= noise; });
  };
  each_pair(first, second, [&](double x, double y) {
    if (!all) return;
    row[filled++] = y - x;
    if (filled < columns) return;
    check_row();
    filled = 0;
  });
  return all;
}

}  // namespace msprobe::checkpoint
