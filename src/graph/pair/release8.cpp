// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/release8.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dump/names.hpp"
#include "graph/data/item_texts.hpp"
#include "graph/pair/result_members.hpp"
#include "measuring/sum_precision.hpp"
#include "report/table.hpp"
#include "support/ascii.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

using dump::State;
using dump::ValueKind;
using measuring::DifferenceKind;
using measuring::MetricStatus;
using measuring::Mode;
using measuring::TensorMetrics;
using measuring::ValueDifference;
using pairing::Pair;
using verdict::RankResult;

constexpr std::string_view kPass = "pass";
constexpr std::string_view kDifferent = "Different";

/// The worst index so far. An index that is set by a rule instead of measured is written as an integer.
class WorstIndex {
 public:
  void raise(double measured) {
    if (measured <= value_ || std::isnan(measured)) return;
    value_ = measured;
    is_real_ = true;
  }
  void set_most() {
    value_ = 1;
    is_real_ = false;
  }
  Release8 take() const {
    if (value_ > 1) return {.index = 1};
    return {.index = value_, .is_real = is_real_};
  }

 private:
  double value_ = 0;
  bool is_real_ = false;
};

bool is_non_finite(const dump::Item& item) {
  for (const auto which : {dump::kMax, dump::kMin}) {
    const dump::RecordedValue value = item.statistics[which];
    if (value.kind == ValueKind::real && !std::isfinite(value.real)) return true;
  }
  return false;
}

bool has_no_maximum(const dump::Item& item) {
  return item.statistics[dump::kMax].kind == ValueKind::none;
}

bool has_same_checksum(const RankResult& result, const Pair& row) {
  return row.matched() && result.target.text(result.target_item(row).checksum) ==
                              result.golden.text(result.golden_item(row).checksum);
}

/// Releases 8.x treat a rank that has a name as a number; msprobe keeps it as text.
bool is_named_rank(const dump::Side& side, const dump::Item& item) {
  return side.text(item.dtype) == "int";
}

dump::RecordedValue value_of(const dump::Side& side, const dump::Item& item, std::size_t statistic) {
  const dump::RecordedValue value = item.statistics[statistic];
  if (value.kind != ValueKind::text || !is_named_rank(side, item)) return value;
  const auto number = whole_number<std::int64_t>(side.text(value.text));
  return number ? dump::RecordedValue::of(*number) : value;
}

ValueDifference difference_of(const RankResult& result, const Pair& row, std::size_t statistic) {
  if (!row.matched() || result.is_left_out(row)) return result.difference(row, statistic);
  return measuring::difference(
      value_of(result.target, result.target_item(row), statistic), result.target.pool,
      value_of(result.golden, result.golden_item(row), statistic), result.golden.pool, result.python);
}

class NodeJudge {
 public:
  NodeJudge(const RankResult& result, const dump::Api& entry) : result_(result), entry_(entry) {}

  Release8 judge() const {
    if (result_.mode == Mode::md5) return by_checksums();
    return result_.mode == Mode::tensor ? by_tensors() : by_statistics();
  }

 private:
  /// Calls `each` for the items of the node, with their rows.
  template <typename Each>
  void items(const Each& each) const {
    for (const std::uint32_t i : entry_.items()) each(result_.target.items[i], result_.rows[i], i);
  }

  static bool is_result(const dump::Item& item) {
    return item.state == State::output || item.state == State::parameters_grad;
  }

  Release8 by_statistics() const {
    WorstIndex worst;
    items([&](const dump::Item& item, const Pair& row, std::uint32_t) {
      if (!is_result(item)) return;
      if (row.matched()) {
        for (std::size_t i = 0; i < dump::kStatistics; ++i) {
          if (measuring::sum_difference(result_, row, i) == measuring::SumDifference::counts)
            raise(worst, difference_of(result_, row, i), row);
        }
        if (shapes_differ(item, result_.golden_item(row))) worst.set_most();
      } else {
        worst.set_most();
      }
      if (is_non_finite(item)) worst.set_most();
    });
    return worst.take();
  }

  void raise(WorstIndex& worst, const ValueDifference& difference, const Pair& row) const {
    constexpr double kPercent = 100;
    const bool is_number =
        difference.kind == DifferenceKind::number || difference.kind == DifferenceKind::zero;
    if (is_number && difference.relative_missing) return;
    if (is_number && !difference.relative_infinite) {
      worst.raise(difference.relative_percent / kPercent);
    } else if (is_number) {
      // A mean of exactly zero beside one of nearly zero: the difference is compared with the tensor's
      // largest value.
      worst.raise(std::fabs(difference.difference) / largest(result_.golden_item(row)));
    } else if (difference.kind != DifferenceKind::missing) {
      worst.set_most();
    }
  }

  /// The largest magnitude of a tensor's values; 0 if it is unknown.
  static double largest(const dump::Item& item) {
    double most = 0;
    for (const auto which : {dump::kMax, dump::kMin}) {
      const dump::RecordedValue value = item.statistics[which];
      if (value.kind == ValueKind::real) most = std::max(most, std::fabs(value.real));
      if (value.kind == ValueKind::integer)
        most = std::max(most, std::fabs(static_cast<double>(value.integer)));
    }
    return most;
  }

  bool shapes_differ(const dump::Item& target, const dump::Item& golden) const {
    return target.is_tensor && golden.is_tensor &&
           result_.target.text(target.shape) != result_.golden.text(golden.shape);
  }

  /// The smallest share of elements with a relative error below a thousandth, over the tensors.
  struct SmallErrorShare {
    std::optional<double> least;
    bool not_finite = false;
  };

  SmallErrorShare ratio_of(bool results) const {
    SmallErrorShare ratio;
    items([&](const dump::Item& item, const Pair& row, std::uint32_t i) {
      if (is_result(item) != results || has_no_maximum(item)) return;
      if (const std::optional<double> one = ratio_of_row(item, row, result_.metrics[i]))
        ratio.least = std::min(*one, ratio.least.value_or(1));
      if (is_non_finite(item)) ratio.not_finite = true;
    });
    return ratio;
  }

  static std::optional<double> ratio_of_row(const dump::Item& item, const Pair& row,
                                            const TensorMetrics& metrics) {
    if (!item.is_tensor) return std::nullopt;
    if (!row.matched() || metrics.failed || metrics.status == MetricStatus::shape_unmatched ||
        metrics.status == MetricStatus::not_applicable)
      return 0;
    if (metrics.status != MetricStatus::computed) return std::nullopt;
    constexpr double kThousandth = 0.001;
    if (metrics.is_scalar) return metrics.value[measuring::kMaxRelative] < kThousandth ? 1 : 0;
    const double one = metrics.value[measuring::kOneThousandth];
    return std::isnan(one) ? std::nullopt : std::optional(one);
  }

  Release8 by_tensors() const {
    const SmallErrorShare before = ratio_of(false);
    const SmallErrorShare behind = ratio_of(true);
    if (behind.not_finite) return {.index = 1};
    if (before.not_finite || !behind.least) return {.index = 0};
    // A node without inputs counts as if all elements of its inputs were right.
    const double change = before.least.value_or(1) - *behind.least;
    if (change < 0) return {.index = 0};
    return {.index = change, .is_real = true};
  }

  Release8 by_checksums() const {
    bool same = true;
    items([&](const dump::Item&, const Pair& row, std::uint32_t) {
      same = same && has_same_checksum(result_, row);
    });
    return {.index = same ? 1 : 0, .is_real = false, .result = same ? kPass : kDifferent};
  }

  const RankResult& result_;
  const dump::Api& entry_;
};

std::string difference_text(const ValueDifference& difference) {
  return difference.kind != DifferenceKind::number || difference.is_integer
             ? report::plain_text(measuring::difference_cell(difference))
             : rounded_text(difference.difference);
}

/// The difference of two equal values as text; nothing for values that are not numbers.
std::optional<std::string_view> no_difference(const RankResult& result, const Pair& row,
                                              std::size_t statistic) {
  const dump::RecordedValue value = value_of(result.target, result.target_item(row), statistic);
  if (value.kind == ValueKind::real) return "0.0";
  // Integers beyond 64 bits are kept as text.
  constexpr std::size_t kMostDigits = 18;
  const bool large = value.kind == ValueKind::text && result.target.text(value.text).size() > kMostDigits &&
                     dump::is_digits(result.target.text(value.text));
  return large || value.kind == ValueKind::integer ? std::optional<std::string_view>("0") : std::nullopt;
}

std::string relative_text(const ValueDifference& difference) {
  if (difference.kind == DifferenceKind::inf || difference.kind == DifferenceKind::neg_inf ||
      (difference.kind == DifferenceKind::number && difference.relative_infinite))
    return "inf%";
  return short_decimal(report::plain_text(measuring::relative_cell(difference)));
}

TextMembers difference_members(const RankResult& result, const Pair& row) {
  TextMembers out;
  std::array<ValueDifference, dump::kStatistics> differences;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    differences[i] = difference_of(result, row, i);
    const bool is_equal = differences[i].kind == DifferenceKind::zero;
    out.emplace_back(kDifferenceNames[i], is_equal
                                              ? std::string(no_difference(result, row, i).value_or("N/A"))
                                              : difference_text(differences[i]));
  }
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const bool is_equal = differences[i].kind == DifferenceKind::zero;
    out.emplace_back(kRelativeNames[i], is_equal ? (no_difference(result, row, i) ? "0.0%" : "N/A")
                                                 : relative_text(differences[i]));
  }
  return out;
}

TextMembers metric_members(const TensorMetrics& metrics) {
  TextMembers out;
  for (std::size_t i = 0; i < kMetricNames.size(); ++i) {
    const bool is_number = metrics.has(i) && std::isfinite(metrics.value[i]);
    out.emplace_back(kMetricNames[i], is_number ? rounded_text(metrics.value[i])
                                                : report::plain_text(verdict::metric_cell(metrics, i)));
  }
  return out;
}

}  // namespace

Release8 release8_node(const RankResult& result, const dump::Api& entry) {
  return NodeJudge(result, entry).judge();
}

Release8 release8_collection(const std::vector<Release8>& held, bool by_checksums) {
  Release8 worst;
  for (const Release8& each : held) {
    if (!each.index) continue;
    if (!worst.index || (by_checksums ? *each.index < *worst.index : *each.index > *worst.index))
      worst = {.index = each.index, .is_real = each.is_real};
  }
  return worst;
}

std::string index_text(const Release8& node) {
  std::string text;
  if (node.is_real) {
    append_json_real(text, *node.index);
  } else {
    append_json_integer(text, static_cast<int>(*node.index));
  }
  return text;
}

TextMembers release8_members(const RankResult& result, std::size_t row) {
  if (result.mode == Mode::tensor) return metric_members(result.metrics[row]);
  if (result.mode == Mode::statistics) return difference_members(result, result.rows[row]);
  const bool same = has_same_checksum(result, result.rows[row]);
  return {{"Result", std::string(same ? kPass : kDifferent)}};
}

}  // namespace msprobe::graph
