// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "diagnosis/replay/signed_product.hpp"

namespace msprobe::diagnosis::replay {
namespace {

bool counts_by(const Offsets& offsets, std::size_t step) {
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] != static_cast<std::int64_t>(i * step)) return false;
  }
  return true;
}

bool is_row_major(const Matrices& matrices) {
  const std::size_t columns = matrices.column.size();
  return counts_by(matrices.column, 1) && counts_by(matrices.row, columns) &&
         counts_by(matrices.batch, columns * matrices.row.size());
}

bool is_transposed(const Matrices& matrices) {
  const std::size_t rows = matrices.row.size();
  return counts_by(matrices.row, 1) && counts_by(matrices.column, rows) &&
         counts_by(matrices.batch, rows * matrices.column.size());
}

/// The sum of squares and the largest of the numbers of a stream.
struct Seen {
  double squares = 0;
  double largest = 0;
  bool all_finite = true;

  void add(std::span<const double> values) {
    // Several sums run side by side, because each addition waits for the one before.
    std::array<double, 4> sums{};
    double most = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sums[i % sums.size()] += values[i] * values[i];
      most = std::max(most, std::fabs(values[i]));
    }
    double sum = sums[0] + sums[1] + sums[2] + sums[3];
    if (!std::isfinite(sum)) {
      sum = 0;
      for (const double x : values) {
        all_finite = all_finite && std::isfinite(x);
        if (std::isfinite(x)) sum += x * x;
      }
    }
    squares += sum;
    largest = std::max(largest, most);
  }
};

/// Cuts a stream into rows: `visit(index of the first element in its row, elements)`.
class RowReader {
 public:
  RowReader(const Tensor& tensor, std::size_t length) : stream_(tensor), length_(length) {}

  template <typename Visit>
  void next_row(Seen& seen, Visit&& visit) {
    for (std::size_t at = 0; at < length_;) {
      if (piece_.empty()) {
        piece_ = stream_.next();
        seen.add(piece_);
      }
      const std::size_t count = std::min(piece_.size(), length_ - at);
      visit(at, piece_.first(count));
      piece_ = piece_.subspan(count);
      at += count;
    }
  }

 private:
  ValueStream stream_;
  std::size_t length_;
  std::span<const double> piece_;
};

/// values times the rows of `table` from `first` on
void add_products(std::span<const double> values, const std::vector<SignedSums>& table, std::size_t first,
                  SignedSums& sums) {
  SignedSums local = sums;
  const SignedSums* row = table.data() + first;
  for (const double x : values) {
    for (std::size_t s = 0; s < kSigns; ++s) local[s] += x * (*row)[s];
    ++row;
  }
  sums = local;
}

class StreamedProduct {
 public:
  StreamedProduct(Arguments& arguments, const Product& product)
      : arguments_(arguments),
        product_(product),
        depth_(product.left.column.size()),
        columns_(product.right.column.size()),
        right_transposed_(!is_row_major(product.right)) {
    arguments.workspace().take((depth_ + columns_) * kSigns);
    signs_.reserve(columns_);
    for (std::size_t n = 0; n < columns_; ++n) signs_.push_back(signs_of(n));
  }

  Results run() {
    RowReader left(*product_.left.array->unread, depth_);
    RowReader right(*product_.right.array->unread, right_transposed_ ? depth_ : columns_);
    RowReader output(arguments_.output(0), columns_);
    for (std::size_t b = 0; b < product_.output.batch.size(); ++b) {
      arguments_.workspace().work(0);  // hears Ctrl-C
      const std::vector<SignedSums> table = right_sums(right);
      for (std::size_t m = 0; m < product_.left.row.size(); ++m) {
        SignedSums sums{};
        left.next_row(left_, [&](std::size_t first, std::span<const double> values) {
          add_products(values, table, first, sums);
        });
        SignedSums got{};
        output.next_row(output_, [&](std::size_t first, std::span<const double> values) {
          add_products(values, signs_, first, got);
        });
        add_row(b, m, sums, got);
      }
    }
    return results();
  }

 private:
  std::vector<SignedSums> right_sums(RowReader& right) {
    std::vector<SignedSums> sums(depth_);
    for (std::size_t row = 0; row < (right_transposed_ ? columns_ : depth_); ++row) {
      right.next_row(right_, [&](std::size_t first, std::span<const double> values) {
        if (!right_transposed_) {
          add_products(values, signs_, first, sums[row]);
          return;
        }
        const SignedSums signs = signs_[row];
        SignedSums* into = sums.data() + first;
        for (const double x : values) {
          for (std::size_t s = 0; s < kSigns; ++s) (*into)[s] += x * signs[s];
          ++into;
        }
      });
    }
    return sums;
  }

  void add_row(std::size_t b, std::size_t m, const SignedSums& sums, const SignedSums& got) {
    SignedSums added{};
    if (product_.added.array != nullptr && product_.beta != 0) {
      // The same row for all, as a bias is: once.
      const bool is_known = added_known_ && product_.added.batch[b] + product_.added.row[m] == added_at_;
      if (!is_known) {
        for (std::size_t n = 0; n < columns_; ++n) {
          const double x = at(product_.added, b, m, n);
          for (std::size_t s = 0; s < kSigns; ++s) added[s] += x * signs_[n][s];
          row_squares_ = n == 0 ? x * x : row_squares_ + x * x;
          added_largest_ = std::max(added_largest_, std::fabs(x));
          added_finite_ = added_finite_ && std::isfinite(x);
        }
        added_known_ = true;
        added_at_ = product_.added.batch[b] + product_.added.row[m];
        added_row_ = added;
      }
      added = added_row_;
      added_squares_ += row_squares_;
    }
    for (std::size_t s = 0; s < kSigns; ++s) {
      const double expected = product_.alpha * sums[s] + product_.beta * added[s];
      difference_ += (got[s] - expected) * (got[s] - expected);
      norm_ += expected * expected;
    }
  }

  Results results() const {
    if (!left_.all_finite || !right_.all_finite || !added_finite_) throw NoStatement(Status::too_large);
    Results results(1);
    if (output_.all_finite) {
      results[0].distance = {std::sqrt(difference_ / kSigns), std::sqrt(norm_ / kSigns)};
    } else {
      results[0].distance = not_finite(arguments_, std::fabs(product_.alpha) * left_.largest *
                                                           right_.largest * static_cast<double>(depth_) +
                                                       std::fabs(product_.beta) * added_largest_);
    }
    results[0].sizes =
        product_sizes(arguments_, product_,
                      {std::sqrt(left_.squares), std::sqrt(right_.squares), std::sqrt(added_squares_)});
    return results;
  }

  Arguments& arguments_;
  const Product& product_;
  std::size_t depth_;
  std::size_t columns_;
  bool right_transposed_;
  std::vector<SignedSums> signs_;
  Seen left_;
  Seen right_;
  Seen output_;
  bool added_known_ = false;
  bool added_finite_ = true;
  std::int64_t added_at_ = 0;
  SignedSums added_row_{};
  double row_squares_ = 0;
  double added_squares_ = 0;
  double added_largest_ = 0;
  double difference_ = 0;
  double norm_ = 0;
};

}  // namespace

bool can_be_streamed(const Product& product) {
  return product.left.array->unread != nullptr && product.right.array->unread != nullptr &&
         is_row_major(product.left) && is_row_major(product.output) &&
         (is_row_major(product.right) || is_transposed(product.right));
}

Results streamed_product(Arguments& arguments, const Product& product) {
  if (arguments.output(0).shape != product.shape) refuse_argument();
  return StreamedProduct(arguments, product).run();
}

}  // namespace msprobe::diagnosis::replay
