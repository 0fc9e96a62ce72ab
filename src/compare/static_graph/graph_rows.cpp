// SPDX-License-Identifier: Apache-2.0
#include "compare/static_graph/graph_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compare/metrics/tensor_metrics.hpp"
#include "formats/element_values.hpp"
#include "formats/npy.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using formats::StoredTensor;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostMagnitude = 0.5;
constexpr double kTinyMagnitude = 1e-10;

const char kNotArray[] = "Dump file is not ndarray.";
const char kEmpty[] = "This is empty data, can not compare.";
const char kScalar[] = "This is type of scalar data, can not compare.";
const char kShapes[] = "Shape of NPU and bench Tensor do not match.";
const char kTensorShapes[] = "Tensor shapes do not match.";
const char kDtypes[] = "Dtype of NPU and bench Tensor do not match. Skipped.";
const char kPositions[] = "The position of inf or nan in NPU and bench Tensor do not match.";
const char kNoTarget[] = "Dump file of NPU not found.";
const char kNoGolden[] = "Dump file of Bench not found.";

using Statistics = std::array<double, kStatistics>;

/// Python prints nothing for NaN here; everywhere else, and with our rules, it is `Nan`.
ListedCell number(double value, bool python_rules) {
  if (python_rules && std::isnan(value)) return std::string();
  return value;
}

/// What is not there: nothing in the Python tool's table, N/A in ours.
ListedCell absent(bool python_rules) {
  return std::string(python_rules ? "" : "N/A");
}

void add_statistics(ListedRow& row, const Statistics* statistics, bool python_rules) {
  for (std::size_t i = 0; i < kStatistics; ++i) {
    row.cells.push_back(statistics == nullptr ? absent(python_rules)
                                              : number((*statistics)[i], python_rules));
  }
}

/// The Python tool ends every message of this table with a line break.
std::string joined(const std::vector<std::string>& messages, bool python_rules) {
  std::string out;
  for (const std::string& message : messages) {
    if (!python_rules && !out.empty()) out += ' ';
    out += message;
    if (python_rules) out += '\n';
  }
  return out;
}

/// The text of a shape with square brackets, which no spreadsheet takes for a negative number.
std::string bracketed(std::string shape) {
  std::replace(shape.begin(), shape.end(), '(', '[');
  std::replace(shape.begin(), shape.end(), ')', ']');
  return shape;
}

std::string tuple_text(const std::vector<std::int64_t>& shape) {
  return shape.size() == 1 ? fmt::format("[{},]", shape[0]) : fmt::format("[{}]", fmt::join(shape, ", "));
}

// ---- tensors

/// A number as it is after a computation in the stored type, which NumPy's reductions of floats keep.
double in_type(double value, tensor::DType dtype) {
  if (!std::isfinite(value)) return value;
  if (dtype == tensor::DType::float32) return static_cast<double>(static_cast<float>(value));
  if (dtype != tensor::DType::float16) return value;
  constexpr int kHalfDigits = 11;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, kHalfDigits)), exponent - kHalfDigits);
}

struct TensorSide {
  bool found = false;
  StoredTensor tensor;
  Statistics statistics{};
  std::string failure;
};

TensorSide open_side(const GraphItem* item) {
  TensorSide side;
  if (item == nullptr) return side;
  try {
    side.tensor = formats::open_npy(open_file(item->file));
    const tensor::Statistics all = formats::statistics_of(side.tensor);
    const auto dtype = side.tensor.dtype;
    const bool unordered = all.nan > 0 || all.count == 0;
    side.statistics = {unordered ? kNan : all.max, unordered ? kNan : all.min, in_type(all.mean(), dtype),
                       in_type(all.norm(), dtype)};
    side.found = true;
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    side.failure = error.what();
  }
  return side;
}

/// 8.1.1's rule, which static graphs still have.
bool reached(const TensorMetrics& metrics) {
  const double cosine = metrics.value[kCosine];
  const double error = metrics.value[kMaxAbs];
  if (cosine < 0.99 && error > 0.001) return false;
  return !(cosine < 0.9 || error > 1);
}

void add_verdict(ListedRow& row, const char* accuracy, const std::vector<std::string>& messages,
                 bool python_rules) {
  row.cells.emplace_back(std::string(accuracy));
  row.cells.emplace_back(joined(messages, python_rules));
}

void explain(ListedRow& row, Verdict verdict, const std::vector<std::string>& messages) {
  row.verdict = std::max(row.verdict, verdict);
  if (!messages.empty()) row.reason = joined(messages, false);
}

/// Why two arrays are not compared; sets the row's verdict.
std::vector<std::string> tensor_obstacles(ListedRow& row, const TensorSide& target, const TensorSide& golden,
                                          bool python_rules) {
  std::vector<std::string> messages;
  for (const TensorSide* side : {&target, &golden}) {
    if (side->failure.empty()) continue;
    messages.push_back("Dump file not found or read failed. (" + side->failure + ")");
    row.unreadable = true;
  }
  if (row.unreadable) {
    explain(row, Verdict::warning, messages);
    return messages;
  }
  if (!target.found || !golden.found) {
    messages.emplace_back(python_rules ? kNotArray : target.found ? kNoGolden : kNoTarget);
    explain(row, Verdict::warning, messages);
    return messages;
  }
  if (target.tensor.numel() == 0 || golden.tensor.numel() == 0) {
    messages.emplace_back(kEmpty);
    explain(row, target.tensor.shape == golden.tensor.shape ? Verdict::pass : Verdict::error, messages);
    return messages;
  }
  const bool scalar = target.tensor.shape.empty() || golden.tensor.shape.empty();
  if (scalar && python_rules) messages.emplace_back(kScalar);
  if (target.tensor.shape != golden.tensor.shape) messages.emplace_back(kShapes);
  if (target.tensor.dtype != golden.tensor.dtype) messages.emplace_back(kDtypes);
  const bool differ =
      target.tensor.shape != golden.tensor.shape || target.tensor.dtype != golden.tensor.dtype;
  if (differ) explain(row, Verdict::error, messages);
  return messages;
}

// ---- statistics

double shortened(double value, bool python_rules) {
  return python_rules ? static_cast<double>(static_cast<float>(value)) : value;
}

struct StatisticDifference {
  double value = 0;
  std::string relative;
};

StatisticDifference difference_of(double target, double golden, bool python_rules) {
  StatisticDifference result;
  if (python_rules) {
    const auto n = static_cast<float>(target);
    const auto b = static_cast<float>(golden);
    const float difference = n - b;
    result.value = static_cast<double>(difference);
    const float relative = difference / b;
    result.relative = b == 0                 ? "N/A"
                      : std::isnan(relative) ? "Nan"
                                             : formats::float_text(std::fabs(relative * 100)) + "%";
    return result;
  }
  const bool same = target == golden || (std::isnan(target) && std::isnan(golden));
  result.value = same ? 0.0 : target - golden;
  if (same) {
    result.relative = "0.0%";
  } else if (std::isnan(result.value)) {
    result.relative = "Nan";
  } else if (golden == 0) {
    result.relative = "inf";
  } else {
    const double relative = std::fabs(result.value / golden * 100);
    result.relative = std::isnan(relative) ? "Nan" : python_repr(relative) + "%";
  }
  return result;
}

/// Difference of the maxima in proportion to the larger of them, signed as in the Python tool or not.
double magnitude(double difference, double target, double golden, bool python_rules) {
  if (std::isnan(target) && std::isnan(golden)) return 0;
  if (python_rules) {
    const auto larger = static_cast<double>(static_cast<float>(golden > target ? golden : target));
    return difference / (larger + kTinyMagnitude);
  }
  if (difference == 0) return 0;
  const double larger = std::max(std::fabs(target), std::fabs(golden));
  return std::isinf(larger) ? std::numeric_limits<double>::infinity()
                            : std::fabs(difference) / (larger + kTinyMagnitude);
}

std::vector<std::string> statistics_obstacles(ListedRow& row, const GraphItem* target,
                                              const GraphItem* golden, bool python_rules) {
  std::vector<std::string> messages;
  if (target == nullptr || golden == nullptr) {
    if (!python_rules) {
      messages.emplace_back(target == nullptr ? kNoTarget : kNoGolden);
    } else {
      const GraphItem& there = target == nullptr ? *golden : *target;
      messages.emplace_back(there.shape.empty() ? kScalar : kTensorShapes);
      messages.emplace_back(kDtypes);
    }
    explain(row, Verdict::warning, messages);
    return messages;
  }
  const bool scalar = target->shape.empty() || golden->shape.empty();
  const bool shapes = target->shape != golden->shape;
  if (scalar && python_rules) {
    messages.emplace_back(kScalar);
  } else if (shapes) {
    messages.emplace_back(kTensorShapes);
  }
  if (target->dtype != golden->dtype) messages.emplace_back(kDtypes);
  if (shapes || target->dtype != golden->dtype) explain(row, Verdict::error, messages);
  return messages;
}

void start_row(ListedRow& row, const GraphItem* target, const GraphItem* golden) {
  row.target_only = golden == nullptr;
  row.golden_only = target == nullptr;
}

}  // namespace

std::vector<std::string> graph_columns(GraphMode mode) {
  std::vector<std::string> columns = {
      "NPU Name",           "Bench Name", "NPU Dtype",  "Bench Dtype",  "NPU Tensor Shape",
      "Bench Tensor Shape", "NPU max",    "NPU min",    "NPU mean",     "NPU l2norm",
      "Bench max",          "Bench min",  "Bench mean", "Bench l2norm", "Accuracy Reached or Not",
      "Err_message"};
  const std::vector<std::string> more =
      mode == GraphMode::tensors
          ? std::vector<std::string>{"Cosine",
                                     "EucDist",
                                     "MaxAbsErr",
                                     "MaxRelativeErr",
                                     "One Thousandth Err Ratio",
                                     "Five Thousandths Err Ratio"}
          : std::vector<std::string>{"Max diff",       "Min diff",       "Mean diff",       "L2norm diff",
                                     "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr",
                                     "NPU CSV File",   "Bench CSV File"};
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

ListedRow tensor_row(const GraphItem* target, const GraphItem* golden, bool python_rules) {
  ListedRow row;
  start_row(row, target, golden);
  row.name = target != nullptr ? target->key : golden->key;
  const TensorSide n = open_side(target);
  const TensorSide b = open_side(golden);
  const auto text = [&](const TensorSide& side, std::string value) -> ListedCell {
    return side.found ? ListedCell(std::move(value)) : absent(python_rules);
  };
  const auto dtype = [](const TensorSide& side) { return std::string(tensor::info(side.tensor.dtype).name); };
  const auto shape = [&](const TensorSide& side) -> ListedCell {
    if (side.found) return tuple_text(side.tensor.shape);
    return std::string(python_rules ? "None" : "N/A");
  };
  row.cells.push_back(target != nullptr ? ListedCell(target->file) : absent(python_rules));
  row.cells.push_back(golden != nullptr ? ListedCell(golden->file) : absent(python_rules));
  row.cells.push_back(text(n, dtype(n)));
  row.cells.push_back(text(b, dtype(b)));
  row.cells.push_back(shape(n));
  row.cells.push_back(shape(b));
  add_statistics(row, n.found ? &n.statistics : nullptr, python_rules);
  add_statistics(row, b.found ? &b.statistics : nullptr, python_rules);

  std::vector<std::string> messages = tensor_obstacles(row, n, b, python_rules);
  TensorMetrics metrics;
  if (messages.empty()) {
    try {
      metrics = compare_tensors(n.tensor, b.tensor, python_rules);
      if (metrics.status == MetricStatus::not_applicable) {
        messages.push_back(python_rules ? kPositions : metrics.messages.back());
        explain(row, Verdict::error, messages);
      }
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      metrics.status = MetricStatus::unsupported;
      messages.push_back(std::string("Dump file not found or read failed. (") + error.what() + ")");
      row.unreadable = true;
      explain(row, Verdict::warning, messages);
    }
  }
  const bool computed = messages.empty() && metrics.status == MetricStatus::computed;
  if (!computed) {
    add_verdict(row, "", messages, python_rules);
    for (std::size_t i = 0; i < kMetrics; ++i) row.cells.push_back(absent(python_rules));
    return row;
  }
  const bool good = metrics.is_scalar ? !(metrics.value[kMaxAbs] > 1) : reached(metrics);
  row.cells.emplace_back(std::string(good ? "Yes" : "No"));
  std::string remarks;
  for (const std::string& message : metrics.messages) remarks += (remarks.empty() ? "" : " ") + message;
  row.cells.emplace_back(remarks);
  for (std::size_t i = 0; i < kMetrics; ++i) {
    if (metrics.is_scalar && i != kMaxAbs && i != kMaxRelative) {
      row.cells.emplace_back(std::string("unsupported"));
    } else {
      row.cells.emplace_back(metrics.value[i]);
    }
  }
  const Metric which = metrics.is_scalar ? kMaxRelative : kCosine;
  row.measure =
      fmt::format("{} {:.6g}", metrics.is_scalar ? "MaxRelativeErr" : "Cosine", metrics.value[which]);
  row.weight = metrics.is_scalar ? metrics.value[which] : 1 - metrics.value[which];
  if (std::isnan(row.weight)) row.weight = std::numeric_limits<double>::infinity();
  if (!good) explain(row, Verdict::error, {"the accuracy is not reached"});
  return row;
}

ListedRow statistics_row(const GraphItem* target, const GraphItem* golden, bool python_rules) {
  ListedRow row;
  start_row(row, target, golden);
  row.name = target != nullptr ? target->key : golden->key;
  const auto text = [&](const GraphItem* item, std::string GraphItem::*field) -> ListedCell {
    return item != nullptr ? ListedCell(item->*field) : absent(python_rules);
  };
  // The Python tool prints an absent shape as the text of NaN.
  const auto shape = [&](const GraphItem* item) -> ListedCell {
    if (item != nullptr) return bracketed(item->shape);
    return std::string(python_rules ? "nan" : "N/A");
  };
  Statistics n{};
  Statistics b{};
  for (std::size_t i = 0; i < kStatistics; ++i) {
    if (target != nullptr) n[i] = shortened(target->statistics[i], python_rules);
    if (golden != nullptr) b[i] = shortened(golden->statistics[i], python_rules);
  }
  row.cells = {text(target, &GraphItem::key),
               text(golden, &GraphItem::key),
               text(target, &GraphItem::dtype),
               text(golden, &GraphItem::dtype),
               shape(target),
               shape(golden)};
  add_statistics(row, target != nullptr ? &n : nullptr, python_rules);
  add_statistics(row, golden != nullptr ? &b : nullptr, python_rules);

  const std::vector<std::string> messages = statistics_obstacles(row, target, golden, python_rules);
  if (!messages.empty()) {
    add_verdict(row, "", messages, python_rules);
    for (std::size_t i = 0; i < 2 * kStatistics; ++i) row.cells.push_back(absent(python_rules));
  } else {
    std::array<StatisticDifference, kStatistics> differences;
    bool one_sided_nan = false;
    for (std::size_t i = 0; i < kStatistics; ++i) {
      differences[i] = difference_of(n[i], b[i], python_rules);
      one_sided_nan = one_sided_nan || std::isnan(n[i]) != std::isnan(b[i]);
    }
    const double off = magnitude(differences[kMax].value, n[kMax], b[kMax], python_rules);
    const bool good = off <= kMostMagnitude && (python_rules || !one_sided_nan);
    add_verdict(row, good ? "Yes" : "No", {}, python_rules);
    for (const StatisticDifference& each : differences) row.cells.push_back(number(each.value, python_rules));
    for (const StatisticDifference& each : differences) row.cells.emplace_back(each.relative);
    row.weight = std::isnan(off) || one_sided_nan ? std::numeric_limits<double>::infinity() : off;
    row.measure = "MaxRelativeErr " + differences[kMax].relative;
    if (!good) explain(row, Verdict::error, {"the accuracy is not reached"});
  }
  row.cells.push_back(text(target, &GraphItem::file));
  row.cells.push_back(text(golden, &GraphItem::file));
  return row;
}

}  // namespace msprobe::compare
