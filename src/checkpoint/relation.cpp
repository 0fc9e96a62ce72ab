// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/relation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/line_hash.hpp"
#include "checkpoint/low_rank.hpp"
#include "checkpoint/permutation.hpp"
#include "checkpoint/pieces.hpp"
#include "checkpoint/rounding.hpp"
#include "support/text.hpp"
#include "tensor/float_form.hpp"

namespace msprobe::checkpoint {
namespace {

using tensor::DType;

// With more lines than this, rows and columns are not examined one by one: their sums take 48 bytes each.
constexpr std::int64_t kMostLines = std::int64_t{1} << 20;

// In smaller matrices any difference has a low rank.
constexpr std::int64_t kLeastMatrix = 256;

/// Sums over pairs of elements.
struct PairSums {
  double xx = 0;
  double xy = 0;
  double yy = 0;
  void add(double x, double y) {
    xx += x * x;
    xy += x * y;
    yy += y * y;
  }
  double factor() const { return xy / xx; }
  /// True if y is a multiple of x, as far as sums show.
  bool is_multiple() const {
    if (!(xx > 0) || !(yy > 0) || !std::isfinite(xx) || !std::isfinite(yy)) return false;
    constexpr double kRounding = 1e-4;  // of the narrowest type, squared
    return yy - xy * xy / xx <= kRounding * yy;
  }
  /// For sums over some of the pairs: if all pairs are multiples, these are multiples too.
  bool may_be_multiple() const { return (xx == 0 && yy == 0) || is_multiple(); }
};

/// The moments of one side.
struct Features {
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  std::int64_t nan = 0;

  template <typename T>
  void add(T value) {
    const auto x = static_cast<double>(value);
    if (std::isnan(x)) {
      ++nan;
      return;
    }
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    least = std::min(least, x);
    most = std::max(most, x);
  }
};

/// How the initialisers of PyTorch and transformers may have left a parameter: "normal with deviation 0.02"
/// or "uniform within 0.0625"; empty if the moments fit neither. A matrix has `fan_in` columns.
std::string initialiser_of(const Features& side, std::int64_t numel, std::int64_t fan_in) {
  const auto n = static_cast<double>(numel);
  const double mean = side.sum / n;
  const double variance = side.squares / n - mean * mean;
  if (!(variance > 0)) return {};
  const double deviation = std::sqrt(variance);
  const double kurtosis = side.fourth / n / (variance * variance);
  const double error = 1 / std::sqrt(n);
  if (std::fabs(mean) > 5 * deviation * error) return {};
  const double largest = std::max(std::fabs(side.least), std::fabs(side.most));
  // A uniform distribution has a kurtosis of 9/5 and comes near its bound; a normal one has a kurtosis of 3.
  const double bound = deviation * std::sqrt(3.0);
  if (std::fabs(kurtosis - 1.8) < 6 * error + 0.02 && largest < bound * (1 + 4 * error)) {
    for (const double gain : {1.0, std::sqrt(3.0), std::sqrt(6.0)}) {
      if (std::fabs(bound * std::sqrt(static_cast<double>(fan_in)) / gain - 1) < 3 * error + 0.01)
        return fmt::format("uniform within {}", short_number(bound, 3));
    }
    return {};
  }
  if (std::fabs(kurtosis - 3) > 20 * error + 0.02) return {};
  for (const double usual : {0.02, 0.01, 0.006, 1.0}) {
    if (std::fabs(deviation / usual - 1) < 5 * error + 0.003)
      return fmt::format("normal with deviation {}", short_number(usual, 3));
  }
  return {};
}

/// Checks whether the lines that differ are all zeros, or all NaN, on one side.
class DeadLines {
 public:
  explicit DeadLines(std::int64_t length)
      : zeros_(hash_of_constant(0, length)),
        nans_(hash_of_constant(std::numeric_limits<double>::quiet_NaN(), length)) {}

  void add(std::uint64_t first, std::uint64_t second) {
    first_zero_ = first_zero_ && first == zeros_;
    second_zero_ = second_zero_ && second == zeros_;
    first_nan_ = first_nan_ && first == nans_;
    second_nan_ = second_nan_ && second == nans_;
  }
  std::string text() const {
    if (first_zero_) return ": 0 throughout in the first";
    if (second_zero_) return ": 0 throughout in the second";
    if (first_nan_) return ": NaN throughout in the first";
    if (second_nan_) return ": NaN throughout in the second";
    return {};
  }

 private:
  static std::uint64_t hash_of_constant(double value, std::int64_t length) {
    OrderedHash hash;
    const std::array one = {mixed(bits_of(value) + 1)};
    for (std::int64_t i = 0; i < length; ++i) hash.add_mixed(one);
    return hash.value();
  }

  std::uint64_t zeros_;
  std::uint64_t nans_;
  bool first_zero_ = true;
  bool second_zero_ = true;
  bool first_nan_ = true;
  bool second_nan_ = true;
};

std::string lines_text(const char* what, const std::vector<std::uint64_t>& first,
                       const std::vector<std::uint64_t>& second, std::int64_t length) {
  std::size_t count = 0;
  std::size_t begin = first.size();
  std::size_t end = 0;
  DeadLines dead(length);
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] == second[i]) continue;
    ++count;
    begin = std::min(begin, i);
    end = i + 1;
    dead.add(first[i], second[i]);
  }
  if (count == 0 || count * 4 > first.size()) return {};
  std::string text;
  if (count == 1) {
    text = fmt::format("only elements of {} {}", what, begin);
  } else if (count == end - begin) {
    text = fmt::format("only {}s {} to {}", what, begin, end - 1);
  } else {
    text = fmt::format("only {} of {} {}s differ, the first of them {} {}", human_count(count),
                       human_count(first.size()), what, what, begin);
    return text + dead.text();
  }
  return text + " differ" + dead.text();
}

/// "only rows 3 to 6 differ: 0 throughout in the second"; empty if more than a quarter of the rows and of the
/// columns differ. Both sides have that many rows and columns.
std::string differing_lines(const LineHashes& first, const LineHashes& second, std::int64_t rows,
                            std::int64_t columns) {
  if (first.rows().size() < 2 || columns < 2) return {};
  std::string text = lines_text("row", first.rows(), second.rows(), columns);
  if (text.empty()) text = lines_text("column", first.columns(), second.columns(), rows);
  return text;
}

class RelationFinder {
 public:
  RelationFinder(const Parameter& first, const Parameter& second, const PairMetrics& metrics)
      : first_(first),
        second_(second),
        metrics_(metrics),
        numel_(first.numel()),
        rows_(first.shape.empty() ? 1 : first.shape[0]),
        columns_(rows_ == 0 ? 0 : numel_ / rows_) {
    if (first.dtype == second.dtype) return;
    const bool is_first = tensor::info(first.dtype).size < tensor::info(second.dtype).size;
    narrow_ = is_first ? first.dtype : second.dtype;
  }

  Relation run() {
    Relation relation;
    if (numel_ == 0 || is_complex(first_.dtype) || is_complex(second_.dtype)) return relation;
    with_work_type(first_, second_, [&]<typename T>(T) { read<T>(); });
    // Norms and biases that were never trained all have the same content.
    const auto content_of = [](const Features& side, const LineHashes& hashes) {
      return side.least == side.most ? 0 : hashes.all();
    };
    relation.first_content = content_of(a_, *hashes_);
    relation.second_content = content_of(b_, *other_hashes_);
    relation.text = same_shape() ? proved() : are_transposed() ? "transposed" : "";
    relation.is_proved = !relation.text.empty();
    if (relation.is_proved || !same_shape()) return relation;
    if (are_floating()) relation.text = initialised();
    if (relation.text.empty() && !narrow_ && metrics_.unequal > 1) relation.place = where();
    return relation;
  }

 private:
  bool same_shape() const { return first_.shape == second_.shape; }
  bool are_floating() const { return is_floating(first_.dtype) && is_floating(second_.dtype); }

  template <typename T>
  void read() {
    const std::int64_t other_rows = second_.shape.empty() ? 1 : second_.shape[0];
    const std::int64_t other_columns = numel_ / other_rows;
    const bool lines = std::max({rows_, columns_, other_rows, other_columns}) <= kMostLines && numel_ > 1;
    take_metrics();
    hashes_.emplace(rows_, columns_, lines, needs_columns_);
    other_hashes_.emplace(other_rows, other_columns, lines, needs_columns_);
    if (lines && same_shape()) {
      if (rows_ > 1 && columns_ > 1) {
        row_sums_.resize(static_cast<std::size_t>(rows_));
        column_sums_.resize(static_cast<std::size_t>(columns_));
      }
      if (std::min(rows_, columns_) >= kLeastMatrix && are_floating()) sample_.emplace(rows_, columns_);
    }
    RowWalk walk(columns_);
    std::vector<T> narrow_x;
    std::vector<T> narrow_y;
    CastCheck casts(first_.dtype, second_.dtype);
    each_piece<T>(first_, second_, {}, [&](std::span<const T> x, std::span<const T> y, auto, auto) {
      const std::span<const T> first = narrowed(x, narrow_x);
      const std::span<const T> second = narrowed(y, narrow_y);
      hashes_->add(first);
      other_hashes_->add(second);
      if (needs_features_) {
        for (const T value : first) a_.add(value);
        for (const T value : second) b_.add(value);
      }
      walk.advance(x.size(),
                   [&](std::int64_t row, std::int64_t column, std::size_t begin, std::size_t count) {
                     add_sums(x.subspan(begin, count), y.subspan(begin, count), row, column);
                   });
      is_multiple_ = is_multiple_ && sums_.may_be_multiple();
      if constexpr (std::is_floating_point_v<T>) casts.add(x, y);
    });
    cast_ = casts.text();
  }

  /// The values as both sides can hold them.
  template <typename T>
  std::span<const T> narrowed(std::span<const T> values, std::vector<T>& kept) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (narrow_) {
        kept.resize(values.size());
        std::ranges::transform(values, kept.begin(), [&](T value) {
          return static_cast<T>(rounded_to(static_cast<double>(value), *narrow_));
        });
        return kept;
      }
    }
    return values;
  }

  /// The metrics already contain these results, and they rule most relations out.
  void take_metrics() {
    needs_features_ = !same_shape() || narrow_.has_value();
    if (needs_features_) return;
    const auto take = [](const ElementCounts& counts, Features& features) {
      features.nan = static_cast<std::int64_t>(counts.nan);
      if (std::isnan(counts.least)) return;
      features.least = counts.least;
      features.most = counts.most;
    };
    take(metrics_.first, a_);
    take(metrics_.second, b_);
    const bool same_range = a_.nan == b_.nan && a_.least == b_.least && a_.most == b_.most;
    // A few different elements may be in a few columns, which where() names.
    needs_columns_ = same_range || metrics_.unequal <= static_cast<std::uint64_t>(numel_) / 4;
    needs_features_ = may_be_initialised();
    if (needs_features_) a_ = b_ = {};
    is_multiple_ = a_.nan + b_.nan == 0;
    const double shift = (b_.most - a_.most) - (b_.least - a_.least);
    may_be_shifted_ = needs_features_ || std::fabs(shift) <= 8 * unit() * magnitude();
  }

  template <typename T>
  void add_sums(std::span<const T> first, std::span<const T> second, std::int64_t row, std::int64_t column) {
    constexpr std::int64_t kTried = 4;
    if (row == kTried && column == 0) drop_sums(kTried);
    if (!is_multiple_ && !may_be_shifted_ && row_sums_.empty() && column_sums_.empty()) {
      if (!sample_ || !sample_->wants_row(row)) return;
      const std::int64_t step = sample_->column_step();
      for (auto i = static_cast<std::size_t>((step - column % step) % step); i < first.size();
           i += static_cast<std::size_t>(step)) {
        const auto x = static_cast<double>(first[i]);
        sample_->add(row, column + static_cast<std::int64_t>(i), static_cast<double>(second[i]) - x);
      }
      return;
    }
    const bool sampled = sample_ && sample_->wants_row(row);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const auto x = static_cast<double>(first[i]);
      const auto y = static_cast<double>(second[i]);
      const auto place = static_cast<std::size_t>(column) + i;
      sums_.add(x, y);
      difference_ += y - x;
      if (sampled) sample_->add(row, static_cast<std::int64_t>(place), y - x);
      if (!row_sums_.empty()) row_sums_[static_cast<std::size_t>(row)].add(x, y);
      if (!column_sums_.empty()) column_sums_[place].add(x, y);
    }
  }

  /// The first rows show whether factors of rows or columns are worth looking for.
  void drop_sums(std::int64_t rows) {
    const auto possible = [](std::span<const PairSums> lines) {
      return std::ranges::all_of(lines, [](const PairSums& line) { return line.may_be_multiple(); });
    };
    if (!row_sums_.empty() && !possible(std::span(row_sums_).first(static_cast<std::size_t>(rows))))
      row_sums_.clear();
    if (!possible(column_sums_)) column_sums_.clear();
  }

  std::string proved() {
    if (std::string text = constant(b_, "the second"); !text.empty()) return text;
    if (std::string text = constant(a_, "the first"); !text.empty()) return text;
    if (std::string text = order(); !text.empty()) return text;
    if (rows_ == columns_ && columns_ > 1 && are_transposed()) return "transposed";
    if (!are_floating() || !where().empty()) return {};
    if (!cast_.empty()) return cast_;
    if (std::string text = scaled(); !text.empty()) return text;
    return low_rank();
  }

  /// The rest of the difference may be the rounding of both sides.
  std::string low_rank() const {
    if (!sample_ || a_.nan + b_.nan > 0) return {};
    const double noise = unit() * magnitude();
    const auto skeleton = sample_->skeleton(2 * noise);
    if (!skeleton || skeleton->rows.empty()) return {};
    // Errors of the rows and columns that the difference is put together from add up.
    const double more = 8 * static_cast<double>(skeleton->rows.size());
    // The rank of a difference that is hardly larger than this cannot be determined.
    constexpr double kMostNoise = 0.1;
    if (more * noise > kMostNoise * metrics_.l2 / std::sqrt(static_cast<double>(numel_))) return {};
    if (!is_spanned(first_, second_, *skeleton, more * noise)) return {};
    return fmt::format("the difference has rank {}, as with a merged adapter or a step on few tokens",
                       skeleton->rows.size());
  }

  bool are_transposed() const {
    return !hashes_->rows().empty() && hashes_->rows() == other_hashes_->columns();
  }

  std::string constant(const Features& side, const char* which) const {
    if (side.nan == numel_) return fmt::format("{} is NaN throughout", which);
    const Features& other = &side == &a_ ? b_ : a_;
    // Biases and norms are initialised so.
    if (first_.shape.size() < 2 || side.nan > 0 || side.least != side.most || other.least == other.most)
      return {};
    return fmt::format("{} is {} throughout", which, short_number(side.least, 4));
  }

  std::string order() const {
    // A few numbers are often the same in another order.
    constexpr std::size_t kFewest = 8;
    if (hashes_->rows().size() >= (columns_ == 1 ? kFewest : 2)) {
      if (const auto p = permutation_between(hashes_->rows(), other_hashes_->rows()))
        return permutation_text(columns_ == 1 ? "elements" : "rows", *p);
    }
    if (columns_ > 1 && rows_ > 1 && !hashes_->columns().empty()) {
      if (const auto p = permutation_between(hashes_->columns(), other_hashes_->columns()))
        return permutation_text("columns", *p);
    }
    return order_of_both();
  }

  /// Rows and columns in another order at once: lines that hold the same values in any order show where each
  /// belongs.
  std::string order_of_both() const {
    if (columns_ < 2 || rows_ < 2 || hashes_->columns().empty()) return {};
    const auto rows = permutation_between(hashes_->row_sets(), other_hashes_->row_sets());
    if (!rows) return {};
    const auto columns = permutation_between(hashes_->column_sets(), other_hashes_->column_sets());
    if (!columns || !are_permuted(*rows, *columns)) return {};
    const std::string text = permutation_text("rows", *rows);
    const std::string other = permutation_text("columns", *columns);
    return text == "rows permuted" && other == "columns permuted" ? "rows and columns permuted"
                                                                  : text + ", " + other;
  }

  /// Reads the first side again, each row in the other order.
  bool are_permuted(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns) const {
    std::vector<std::size_t> place(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) place[static_cast<std::size_t>(rows[i])] = i;
    return with_work_type(first_, second_, [&]<typename T>(T) {
      tensor::ElementFeed<T, ParameterReader> feed(first_);
      std::vector<T> kept;
      std::vector<T> row(columns.size());
      std::vector<T> ordered(columns.size());
      for (const std::size_t i : place) {
        for (std::size_t filled = 0; filled < row.size();) {
          check_interrupt();
          const std::span<const T> some =
              narrowed(std::span<const T>(feed.next(std::min(row.size() - filled, kPiece))), kept);
          std::ranges::copy(some, row.begin() + static_cast<std::ptrdiff_t>(filled));
          filled += some.size();
        }
        for (std::size_t k = 0; k < row.size(); ++k) ordered[k] = row[static_cast<std::size_t>(columns[k])];
        OrderedHash hash;
        each_mixed(std::span<const T>(ordered),
                   [&](std::span<const std::uint64_t> values) { hash.add_mixed(values); });
        if (hash.value() != other_hashes_->rows()[i]) return false;
      }
      return true;
    });
  }

  /// How far rounding of both sides can move a product or a sum, relative to it.
  double unit() const {
    const auto of = [](DType dtype) {
      const auto form = tensor::float_form(dtype);
      return std::ldexp(1.0, form ? -form->fraction : 0);
    };
    return std::max(of(first_.dtype), of(second_.dtype));
  }

  template <typename Expected>
  bool holds(const Expected& expected) const {
    bool all = true;
    const double tolerance = 2 * unit();
    std::int64_t at = 0;
    each_pair(first_, second_, [&](double x, double y) {
      if (!all) return;
      const double wanted = expected(x, at++);
      all = std::fabs(y - wanted) <= tolerance * std::max(std::fabs(y), std::fabs(wanted)) + kLeast;
    });
    return all;
  }

  /// The factor with as many digits as rounding leaves certain.
  std::string factor_text(double factor) const { return short_number(factor, unit() < 1e-5 ? 5 : 3); }

  std::string scaled() const {
    // A few numbers are always multiples of a few others.
    constexpr std::int64_t kFewest = 16;
    if (a_.nan + b_.nan > 0 || numel_ < kFewest || a_.least == a_.most) return {};
    // A factor that rounding can explain does not count.
    const double factor = is_multiple_ && sums_.is_multiple() ? sums_.factor() : 1;
    if (std::fabs(factor - 1) > 4 * unit()) {
      if (holds([&](double x, std::int64_t) { return x * factor; }))
        return factor_text(factor) == "-1" ? "negated" : fmt::format("scaled by {}", factor_text(factor));
    }
    const double shift = difference_ / static_cast<double>(numel_);
    // A shift that rounding can explain does not count.
    if (may_be_shifted_ && std::fabs(shift) > 8 * unit() * magnitude() && a_.least != a_.most &&
        std::fabs((b_.most - a_.most) - shift) <= 4 * unit() * magnitude() &&
        std::fabs((b_.least - a_.least) - shift) <= 4 * unit() * magnitude() && is_shifted(shift))
      return fmt::format("shifted by {}", factor_text(shift));
    if (columns_ > 1 && rows_ > 1) {
      const auto multiples = [](const std::vector<PairSums>& lines) {
        return std::ranges::all_of(
            lines, [](const PairSums& line) { return line.is_multiple() || (line.xx == 0 && line.yy == 0); });
      };
      const auto factor_of = [](const PairSums& line) { return line.xx > 0 ? line.factor() : 0.0; };
      const auto is_factor = [&](const PairSums& line) {
        return line.xx > 0 && std::fabs(factor_of(line) - 1) > 4 * unit();
      };
      if (std::ranges::any_of(row_sums_, is_factor) && multiples(row_sums_) &&
          holds([&](double x, std::int64_t at) {
            return x * factor_of(row_sums_[static_cast<std::size_t>(at / columns_)]);
          }))
        return "each row scaled by its own factor";
      if (std::ranges::any_of(column_sums_, is_factor) && multiples(column_sums_) &&
          holds([&](double x, std::int64_t at) {
            return x * factor_of(column_sums_[static_cast<std::size_t>(at % columns_)]);
          }))
        return "each column scaled by its own factor";
    }
    return {};
  }

  double magnitude() const {
    return std::max({std::fabs(a_.most), std::fabs(a_.least), std::fabs(b_.most), std::fabs(b_.least)});
  }

  bool is_shifted(double shift) const {
    bool all = true;
    const double tolerance = 2 * unit() * magnitude();
    each_pair(first_, second_,
              [&](double x, double y) { all = all && std::fabs(y - x - shift) <= tolerance; });
    return all;
  }

  bool may_be_initialised() const {
    constexpr std::int64_t kEnough = 1024;
    if (numel_ < kEnough || !are_floating() || !metrics_.cosine) return false;
    if (metrics_.unequal <= static_cast<std::uint64_t>(numel_) / 2) return false;
    // The cosine of independent numbers is below this, except in one case in ten million.
    return !(std::fabs(*metrics_.cosine) > 5.3 / std::sqrt(static_cast<double>(numel_)));
  }

  /// If one side has nothing to do with the other: says whether it looks as the initialisers of PyTorch leave
  /// it.
  std::string initialised() const {
    constexpr std::int64_t kLeastVector = 16;
    const auto begins_so = [](const Features& side) {
      return side.nan == 0 && side.least == side.most && (side.least == 0 || side.least == 1);
    };
    if (numel_ >= kLeastVector && begins_so(a_) != begins_so(b_)) {
      const bool is_first = begins_so(a_);
      return fmt::format("the {} looks as initialised ({} throughout): never loaded?",
                         is_first ? "first" : "second", (is_first ? a_ : b_).least);
    }
    if (!may_be_initialised() || a_.nan + b_.nan > 0) return {};
    const std::string first = initialiser_of(a_, numel_, columns_);
    const std::string second = initialiser_of(b_, numel_, columns_);
    // Two untrained models differ by their seeds.
    if (first.empty() == second.empty()) return {};
    if (!first.empty()) return fmt::format("the first looks as initialised ({}): never loaded?", first);
    return fmt::format("the second looks as initialised ({}): never loaded?", second);
  }

  /// This is no relation, but it says where the difference is.
  std::string where() const { return differing_lines(*hashes_, *other_hashes_, rows_, columns_); }

  static constexpr double kLeast = 1e-300;

  const Parameter& first_;
  const Parameter& second_;
  const PairMetrics& metrics_;
  std::int64_t numel_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::optional<DType> narrow_;  // of two types
  bool needs_features_ = true;
  bool needs_columns_ = true;
  bool is_multiple_ = true;     // as far as sums show
  bool may_be_shifted_ = true;  // as far as the ranges show
  std::optional<LineHashes> hashes_;
  std::optional<LineHashes> other_hashes_;
  Features a_;
  Features b_;
  PairSums sums_;
  double difference_ = 0;
  std::optional<MatrixSample> sample_;  // of the difference
  std::vector<PairSums> row_sums_;
  std::vector<PairSums> column_sums_;
  std::string cast_;
};

}  // namespace

std::uint64_t content_hash(const Parameter& parameter) {
  OrderedHash hash;
  with_work_type(parameter, parameter, [&]<typename T>(T) {
    tensor::ElementFeed<T, ParameterReader> feed(
        parameter, is_complex(parameter.dtype) ? tensor::Parts::complex : tensor::Parts::as_stored);
    while (feed.remaining() > 0) {
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(feed.remaining(), kPiece));
      each_mixed(std::span<const T>(feed.next(count)),
                 [&](std::span<const std::uint64_t> some) { hash.add_mixed(some); });
    }
  });
  return hash.value();
}

Relation find_relation(const Parameter& first, const Parameter& second, const PairMetrics& metrics) {
  return RelationFinder(first, second, metrics).run();
}

}  // namespace msprobe::checkpoint
