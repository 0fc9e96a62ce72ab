// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/step_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/line_hash.hpp"
#include "checkpoint/permutation.hpp"
#include "checkpoint/pieces.hpp"
#include "checkpoint/step_judge.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

/// Samples of each line (row or column), by which lines are found in another order.
template <typename T>
class LineSamples {
 public:
  static constexpr std::int64_t kSamples = 32;
  // Each line of one side is compared with those of the other until one is near, which limits their number.
  static constexpr std::int64_t kMost = std::int64_t{1} << 15;

  LineSamples() = default;
  LineSamples(std::int64_t lines, std::int64_t length)
      : lines_(lines),
        stride_(std::max<std::int64_t>(1, length / kSamples)),
        count_(std::min(kSamples, (length + stride_ - 1) / stride_)),
        values_(static_cast<std::size_t>(lines * count_)),
        steps_(values_.size()) {}

  std::int64_t stride() const { return stride_; }
  bool wants(std::int64_t place) const { return place % stride_ == 0 && place / stride_ < count_; }
  void set(std::int64_t line, std::int64_t place, T value, T step) {
    const auto at = static_cast<std::size_t>(line * count_ + place / stride_);
    values_[at] = value;
    steps_[at] = step;
  }

  /// The place here of each line of `second`, which has the same shape, as in permutation_between(). Nothing
  /// if a line has no place.
  std::optional<std::vector<std::int64_t>> places_of(const LineSamples& second, bool is_searched) const {
    std::vector<std::int64_t> free(static_cast<std::size_t>(lines_));
    std::iota(free.begin(), free.end(), 0);
    std::vector<std::int64_t> permutation;
    bool moves = false;
    for (std::int64_t line = 0; line < lines_; ++line) {
      // The same place is tried first, because a line that did not move is nearest and similar lines may
      // follow.
      const auto own = std::ranges::find(free, line);
      auto found = own != free.end() && is_line_near(line, second, line, is_searched)
                       ? own
                       : std::ranges::find_if(free, [&](std::int64_t other) {
                           return is_line_near(other, second, line, is_searched);
                         });
      if (found == free.end()) return {};
      moves = moves || *found != line;
      permutation.push_back(*found);
      free.erase(found);
    }
    return moves ? std::optional(std::move(permutation)) : std::nullopt;
  }

  /// True if all lines of both are near each other, in their order.
  bool are_lines_near(const LineSamples& second, bool is_searched) const {
    for (std::int64_t line = 0; line < lines_; ++line) {
      if (!is_line_near(line, second, line, is_searched)) return false;
    }
    return true;
  }

 private:
  bool is_line_near(std::int64_t line, const LineSamples& second, std::int64_t other,
                    bool is_searched) const {
    const auto a = static_cast<std::size_t>(line * count_);
    const auto b = static_cast<std::size_t>(other * count_);
    // Formats that search for scales leave some elements further away.
    const T widening = is_searched ? static_cast<T>(SearchedScales::kFarthestOfFew) : T{1};
    int exceptions = is_searched ? 2 : 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count_); ++i) {
      const T step = (steps_[a + i] + second.steps_[b + i]) * widening;
      if (!is_near(values_[a + i], second.values_[b + i], step) && --exceptions < 0) return false;
    }
    return true;
  }

  std::int64_t lines_ = 0;
  std::int64_t stride_ = 1;
  std::int64_t count_ = 0;
  std::vector<T> values_;
  std::vector<T> steps_;
};

/// The factors that may have turned every x so far into its y, where both may be half a step away from the
/// numbers that were rounded to them.
class Factors {
 public:
  void add(double x, double y, double half_step_x, double half_step_y) {
    if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(half_step_x + half_step_y)) {
      positive_.most = negative_.most = -1;
      return;
    }
    constexpr double kRounding = 0x1p-22;
    const double b = half_step_y + kRounding * std::fabs(y);
    const double a = half_step_x + kRounding * std::fabs(x);
    // |y - f x| <= |f| a + b, once for f > 0 and once for -f > 0.
    positive_.at_least(x + a, y - b);
    positive_.at_most(x - a, y + b);
    negative_.at_least(x + a, -y - b);
    negative_.at_most(x - a, -y + b);
  }
  bool any() const { return positive_.any() || negative_.any(); }
  /// The factor with the fewest digits.
  double simplest() const { return positive_.any() ? positive_.simplest() : -negative_.simplest(); }

 private:
  struct FactorRange {
    double least = 0;
    double most = std::numeric_limits<double>::infinity();

    void at_least(double coefficient, double value) { limit(coefficient, value, least, most); }
    void at_most(double coefficient, double value) { limit(-coefficient, -value, least, most); }
    bool any() const { return least <= most; }
    double simplest() const {
      if (least == 0) return 0;
      const double middle = std::isfinite(most) ? (least + most) / 2 : least;
      for (int digits = 1; digits < 7; ++digits) {
        const double unit = std::pow(10.0, std::floor(std::log10(middle)) + 1 - digits);
        const double rounded = std::round(middle / unit) * unit;
        if (rounded >= least && rounded <= most) return rounded;
      }
      return middle;
    }

   private:
    /// Keeps the factors f for which coefficient * f >= value.
    static void limit(double coefficient, double value, double& least, double& most) {
      if (coefficient > 0) {
        least = std::max(least, value / coefficient);
      } else if (coefficient < 0) {
        most = std::min(most, value / coefficient);
      } else if (value > 0) {
        most = -1;
      }
    }
  };

  FactorRange positive_;
  FactorRange negative_;
};

template <typename T>
class NearFinder {
 public:
  NearFinder(const Parameter& first, const Parameter& second, const PairMetrics& metrics)
      : first_(first),
        second_(second),
        metrics_(metrics),
        is_searched_(first.has_searched_scales || second.has_searched_scales),
        rows_(first.shape.empty() ? 1 : first.shape[0]),
        columns_(rows_ == 0 ? 0 : first.numel() / rows_) {}

  std::string run() {
    // A few numbers are always near some multiples of a few others.
    constexpr std::int64_t kFewest = 64;
    if (first_.numel() < kFewest) return {};
    if (first_.shape != second_.shape) return are_transposed() ? "transposed" : "";
    if (first_.base != nullptr) return adapter();
    // Zeros would be a multiple of anything; a constant side is reported as constant.
    const auto is_constant = [](const ElementCounts& side) { return !(side.least < side.most); };
    if (is_constant(metrics_.first) || is_constant(metrics_.second)) return {};
    read();
    if (std::string text = shifted(); !text.empty()) return text;
    if (std::string text = scaled(); !text.empty()) return text;
    return order();
  }

 private:
  void read() {
    const bool lines = rows_ > 1 && columns_ > 1;
    if (lines && rows_ <= LineSamples<T>::kMost) {
      our_rows_ = their_rows_ = LineSamples<T>(rows_, columns_);
      row_factors_.resize(static_cast<std::size_t>(rows_));
    }
    if (lines && columns_ <= LineSamples<T>::kMost)
      our_columns_ = their_columns_ = LineSamples<T>(columns_, rows_);
    RowWalk walk(columns_);
    each_with_steps<T>(
        first_, second_,
        [&](std::span<const T> x, std::span<const T> y, std::span<const T> a, std::span<const T> b) {
          walk.advance(x.size(),
                       [&](std::int64_t row, std::int64_t column, std::size_t begin, std::size_t count) {
                         add(x.subspan(begin, count), y.subspan(begin, count), a.subspan(begin, count),
                             b.subspan(begin, count), row, column);
                       });
        });
  }

  void add(std::span<const T> x, std::span<const T> y, std::span<const T> a, std::span<const T> b,
           std::int64_t row, std::int64_t column) {
    // Formats that search for scales leave some elements further away.
    const double widening = is_searched_ ? SearchedScales::kFarthest : 1.001;
    Factors none;
    Factors& row_factors = row_factors_.empty() ? none : row_factors_[static_cast<std::size_t>(row)];
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto ours = static_cast<double>(x[i]);
      const auto theirs = static_cast<double>(y[i]);
      const auto step = static_cast<double>(a[i] + b[i]);
      moved_ += (theirs - ours) * step;
      steps_ += step * step;
      const double our_step = widening * static_cast<double>(a[i]);
      const double their_step = widening * static_cast<double>(b[i]);
      if (factors_.any()) factors_.add(ours, theirs, our_step, their_step);
      if (row_factors.any()) row_factors.add(ours, theirs, our_step, their_step);
    }
    const auto set = [&](LineSamples<T>& ours, LineSamples<T>& theirs, std::int64_t line, std::int64_t place,
                         std::size_t i) {
      ours.set(line, place, x[i], a[i]);
      theirs.set(line, place, y[i], b[i]);
    };
    if (!row_factors_.empty()) {
      const std::int64_t stride = our_rows_.stride();
      for (auto i = (stride - column % stride) % stride; i < static_cast<std::int64_t>(x.size());
           i += stride) {
        if (our_rows_.wants(column + i))
          set(our_rows_, their_rows_, row, column + i, static_cast<std::size_t>(i));
      }
    }
    if (our_columns_.wants(row)) {
      for (std::size_t i = 0; i < x.size(); ++i)
        set(our_columns_, their_columns_, column + static_cast<std::int64_t>(i), row, i);
    }
  }

  /// Levels are two half steps apart; at the ends, where values are clipped, one.
  std::string shifted() const {
    const double steps = std::round(moved_ / steps_ / 2);
    if (!std::isfinite(steps) || steps == 0) return {};
    std::uint64_t at_ends = 0;
    bool all = true;
    each_with_steps<T>(
        first_, second_,
        [&](std::span<const T> x, std::span<const T> y, std::span<const T> a, std::span<const T> b) {
          for (std::size_t i = 0; all && i < x.size(); ++i) {
            const T half_step = a[i] + b[i];
            const auto moved = [&](double half_steps) {
              return static_cast<T>(static_cast<double>(x[i]) + half_steps * static_cast<double>(half_step));
            };
            if (is_near(moved(2 * steps), y[i], half_step)) continue;
            ++at_ends;
            all = is_near(moved(steps), y[i], half_step);
          }
        });
    // Few elements are at an end. If all were rounded down, more elements would look like ends.
    if (!all || 5 * at_ends > static_cast<std::uint64_t>(first_.numel())) return {};
    return fmt::format("the second is {} step{} of the format {} throughout, as with another zero point",
                       std::fabs(steps), std::fabs(steps) == 1 ? "" : "s", steps > 0 ? "higher" : "lower");
  }

  std::string scaled() const {
    if (factors_.any() && factors_.simplest() != 0 &&
        is_scaled([&](std::int64_t) { return factors_.simplest(); })) {
      const std::string text = short_number(factors_.simplest(), 3);
      return text == "-1" ? "negated" : fmt::format("scaled by {}", text);
    }
    // A search for scales leaves too much room, and so do few columns.
    constexpr std::int64_t kEnough = 16;
    const auto is_possible = [](const Factors& row) { return row.any(); };
    if (is_searched_ || columns_ < kEnough || !std::ranges::all_of(row_factors_, is_possible)) return {};
    std::vector<double> factors;
    for (const Factors& row : row_factors_) factors.push_back(row.simplest());
    const auto factor_of = [&](std::int64_t row) { return factors[static_cast<std::size_t>(row)]; };
    return !factors.empty() && is_scaled(factor_of) ? "each row scaled by its own factor" : "";
  }

  /// Multiplies by a factor that fits each element alone. All elements together must also prove something.
  template <typename FactorOf>
  bool is_scaled(const FactorOf& factor_of_row) const {
    StepJudge<T> judge(is_searched_);
    std::vector<T> wanted;
    std::vector<T> steps;
    RowWalk walk(columns_);
    each_with_steps<T>(
        first_, second_,
        [&](std::span<const T> x, std::span<const T> y, std::span<const T> a, std::span<const T> b) {
          wanted.resize(x.size());
          steps.resize(x.size());
          walk.advance(x.size(), [&](std::int64_t row, std::int64_t, std::size_t begin, std::size_t count) {
            const double factor = factor_of_row(row);
            for (std::size_t i = begin; i < begin + count; ++i) {
              wanted[i] = static_cast<T>(factor * static_cast<double>(x[i]));
              steps[i] = static_cast<T>(std::fabs(factor) * static_cast<double>(a[i])) + b[i];
            }
          });
          judge.add(wanted, y, steps);
        });
    return judge.result().explains();
  }

  bool are_transposed() const {
    return first_.shape.size() == 2 && check_steps(transposed(first_), second_).explains();
  }

  std::string order() const {
    if (row_factors_.empty()) return {};
    if (const auto rows = our_rows_.places_of(their_rows_, is_searched_); rows && are_permuted(*rows))
      return permutation_text("rows", *rows);
    if (const auto columns = our_columns_.places_of(their_columns_, is_searched_);
        columns && are_columns_permuted(*columns))
      return permutation_text("columns", *columns);
    if (rows_ == columns_ && our_columns_.are_lines_near(their_rows_, is_searched_) && are_transposed())
      return "transposed";
    return {};
  }

  bool are_columns_permuted(const std::vector<std::int64_t>& permutation) const {
    const auto width = static_cast<std::size_t>(columns_);
    std::vector<T> values(width);
    std::vector<T> steps(width);
    StepJudge<T> judge(is_searched_);
    tensor::ElementFeed<T, ParameterReader> first(first_);
    tensor::ElementFeed<T, ParameterReader> second(second_);
    StepFeed<T> ours(first_);
    StepFeed<T> theirs(second_);
    std::vector<T> sums;
    for (std::int64_t row = 0; row < rows_ && judge.may_hold(); ++row) {
      check_interrupt();
      const std::span<const T> x = first.next(width);
      const std::span<const T> step = ours.next(width);
      for (std::size_t i = 0; i < width; ++i) {
        values[i] = x[static_cast<std::size_t>(permutation[i])];
        steps[i] = step[static_cast<std::size_t>(permutation[i])];
      }
      judge.add(values, second.next(width), summed_steps<T>(steps, theirs.next(width), sums));
    }
    return judge.result().explains();
  }

  /// Puts rows of the first in order, as many at a time as memory may hold.
  bool are_permuted(const std::vector<std::int64_t>& permutation) const {
    constexpr std::int64_t kBand = std::int64_t{64} << 20;
    const auto width = static_cast<std::size_t>(columns_);
    const std::int64_t rows =
        std::clamp<std::int64_t>(kBand / (2 * columns_ * static_cast<std::int64_t>(sizeof(T))), 1, rows_);
    std::vector<std::int64_t> place(permutation.size());
    for (std::size_t i = 0; i < permutation.size(); ++i)
      place[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
    std::vector<T> values(static_cast<std::size_t>(rows) * width);
    std::vector<T> steps(values.size());
    StepJudge<T> judge(is_searched_);
    tensor::ElementFeed<T, ParameterReader> second(second_);
    StepFeed<T> theirs(second_);
    std::vector<T> sums;
    for (std::int64_t begin = 0; begin < rows_ && judge.may_hold(); begin += rows) {
      const std::int64_t end = std::min(rows_, begin + rows);
      tensor::ElementFeed<T, ParameterReader> first(first_);
      StepFeed<T> ours(first_);
      for (const std::int64_t to : place) {
        check_interrupt();
        const std::span<const T> x = first.next(width);
        const std::span<const T> step = ours.next(width);
        if (to < begin || to >= end) continue;
        const auto at = (to - begin) * columns_;
        std::ranges::copy(x, values.begin() + at);
        std::ranges::copy(step, steps.begin() + at);
      }
      for (std::int64_t row = begin; row < end && judge.may_hold(); ++row) {
        const auto at = static_cast<std::size_t>((row - begin) * columns_);
        judge.add(std::span<const T>(values).subspan(at, width), second.next(width),
                  summed_steps<T>(std::span<const T>(steps).subspan(at, width), theirs.next(width), sums));
      }
    }
    return judge.result().explains();
  }

  /// Finds how many times the update of the adapter is in the second. A merged weight was rounded to its
  /// type.
  std::string adapter() const {
    const double roundoff = tensor::unit_roundoff(second_.dtype);
    Factors times;
    tensor::ElementFeed<T, ParameterReader> base(*first_.base);
    each_with_steps<T>(
        first_, second_,
        [&](std::span<const T> x, std::span<const T> y, std::span<const T> a, std::span<const T> b) {
          const std::span<const T> bases = base.next(x.size());
          for (std::size_t i = 0; i < x.size() && times.any(); ++i) {
            const auto from = static_cast<double>(bases[i]);
            const auto merged = static_cast<double>(y[i]);
            times.add(static_cast<double>(x[i]) - from, merged - from, static_cast<double>(a[i]),
                      static_cast<double>(a[i] + b[i]) + 1.001 * roundoff * std::fabs(merged));
          }
        });
    if (!times.any()) return {};
    if (times.simplest() == 0) return "the adapter is not in the second";
    return fmt::format("the adapter is in the second {} times", short_number(times.simplest(), 3));
  }

  const Parameter& first_;
  const Parameter& second_;
  const PairMetrics& metrics_;
  bool is_searched_;
  std::int64_t rows_;
  std::int64_t columns_;
  Factors factors_;  // of all elements
  std::vector<Factors> row_factors_;
  double moved_ = 0;  // sum of differences times half steps
  double steps_ = 0;  // sum of squares of half steps
  LineSamples<T> our_rows_;
  LineSamples<T> their_rows_;
  LineSamples<T> our_columns_;
  LineSamples<T> their_columns_;
};

}  // namespace

StepCheck check_steps(const Parameter& first, const Parameter& second) {
  const bool has_steps = first.half_step != nullptr || second.half_step != nullptr;
  if (!has_steps || is_complex(first.dtype) || is_complex(second.dtype)) return {};
  const auto check = [&]<typename T>(T) {
    StepJudge<T> judge(first.has_searched_scales || second.has_searched_scales);
    std::vector<T> sums;
    each_with_steps<T>(first, second, [&](auto x, auto y, std::span<const T> a, std::span<const T> b) {
      judge.add(x, y, summed_steps(a, b, sums));
    });
    return judge.result();
  };
  return tensor::work_of(first.dtype, second.dtype) == tensor::Work::single ? check(float{})
                                                                            : check(double{});
}

std::string find_near_relation(const Parameter& first, const Parameter& second, const PairMetrics& metrics) {
  if (is_complex(first.dtype) || is_complex(second.dtype)) return {};
  if (tensor::work_of(first.dtype, second.dtype) == tensor::Work::single)
    return NearFinder<float>(first, second, metrics).run();
  return NearFinder<double>(first, second, metrics).run();
}

}  // namespace msprobe::checkpoint
