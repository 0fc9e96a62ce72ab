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
const char kNoTarget[] = "Dump file of NPU not found.";
const char kNoGolden[] = "Dump file of Bench not found.";

using Statistics = std::array<double, kStatistics>;

ListedCell number(double value, const GraphTraits& traits) {
  if (traits.blank_nan && std::isnan(value)) return std::string();
  return value;
}

ListedCell absent(const GraphTraits& traits) {
  return std::string(traits.absent);
}

void add_statistics(ListedRow& row, const Statistics* statistics, const GraphTraits& traits) {
  for (std::size_t i = 0; i < kStatistics; ++i) {
    row.cells.push_back(statistics == nullptr ? absent(traits) : number((*statistics)[i], traits));
  }
}

std::string sentences(const std::vector<std::string>& messages) {
  std::string out;
  for (const std::string& message : messages) {
    if (!out.empty()) out += ' ';
    out += message;
  }
  return out;
}

std::string lines(const std::vector<std::string>& messages) {
  std::string out;
  for (const std::string& message : messages) out += message + '\n';
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
                 const GraphTraits& traits) {
  row.cells.emplace_back(std::string(accuracy));
  row.cells.emplace_back(traits.message_lines ? lines(messages) : sentences(messages));
}

void explain(ListedRow& row, Verdict verdict, const std::vector<std::string>& messages) {
  row.verdict = std::max(row.verdict, verdict);
  if (!messages.empty()) row.reason = sentences(messages);
}

/// Why two arrays are not compared; sets the row's verdict.
std::vector<std::string> tensor_obstacles(ListedRow& row, const TensorSide& target, const TensorSide& golden,
                                          const GraphTraits& traits) {
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
    messages.emplace_back(traits.absent_as_mismatch ? kNotArray : target.found ? kNoGolden : kNoTarget);
    explain(row, Verdict::warning, messages);
    return messages;
  }
  if (target.tensor.numel() == 0 || golden.tensor.numel() == 0) {
    messages.emplace_back(kEmpty);
    explain(row, target.tensor.shape == golden.tensor.shape ? Verdict::pass : Verdict::error, messages);
    return messages;
  }
  const bool scalar = target.tensor.shape.empty() || golden.tensor.shape.empty();
  if (scalar && traits.scalars_left_out) messages.emplace_back(kScalar);
  if (target.tensor.shape != golden.tensor.shape) messages.emplace_back(kShapes);
  if (target.tensor.dtype != golden.tensor.dtype) messages.emplace_back(kDtypes);
  const bool differ =
      target.tensor.shape != golden.tensor.shape || target.tensor.dtype != golden.tensor.dtype;
  if (differ) explain(row, Verdict::error, messages);
  return messages;
}

// ---- statistics

struct StatisticDifference {
  double value = 0;
  std::string relative;
};

/// As NumPy computes it with arrays of float32.
StatisticDifference difference_in_float32(float target, float golden) {
  StatisticDifference result;
  const float difference = target - golden;
  result.value = static_cast<double>(difference);
  const float relative = difference / golden;
  result.relative = golden == 0            ? "N/A"
                    : std::isnan(relative) ? "Nan"
                                           : formats::float_text(std::fabs(relative * 100)) + "%";
  return result;
}

StatisticDifference difference_of(double target, double golden) {
  StatisticDifference result;
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

/// Difference of the maxima in proportion to the larger of them.
double magnitude(double difference, double target, double golden, const GraphTraits& traits) {
  if (std::isnan(target) && std::isnan(golden)) return 0;
  if (traits.magnitude_with_sign) {
    return difference / (std::max(target, golden) + kTinyMagnitude);
  }
  if (difference == 0) return 0;
  const double larger = std::max(std::fabs(target), std::fabs(golden));
  return std::isinf(larger) ? std::numeric_limits<double>::infinity()
                            : std::fabs(difference) / (larger + kTinyMagnitude);
}

std::vector<std::string> statistics_obstacles(ListedRow& row, const GraphItem* target,
                                              const GraphItem* golden, const GraphTraits& traits) {
  std::vector<std::string> messages;
  if (target == nullptr || golden == nullptr) {
    if (!traits.absent_as_mismatch) {
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
  if (scalar && traits.scalars_left_out) {
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

ListedRow tensor_row(const GraphItem* target, const GraphItem* golden, const GraphTraits& traits,
                     const MeasureTraits& measure) {
  ListedRow row;
  start_row(row, target, golden);
  row.name = target != nullptr ? target->key : golden->key;
  const TensorSide n = open_side(target);
  const TensorSide b = open_side(golden);
  const auto text = [&](const TensorSide& side, std::string value) -> ListedCell {
    return side.found ? ListedCell(std::move(value)) : absent(traits);
  };
  const auto dtype = [](const TensorSide& side) { return std::string(tensor::info(side.tensor.dtype).name); };
  const auto shape = [&](const TensorSide& side) -> ListedCell {
    if (side.found) return tuple_text(side.tensor.shape);
    return std::string(traits.absent_shape_of_array);
  };
  row.cells.push_back(target != nullptr ? ListedCell(target->file) : absent(traits));
  row.cells.push_back(golden != nullptr ? ListedCell(golden->file) : absent(traits));
  row.cells.push_back(text(n, dtype(n)));
  row.cells.push_back(text(b, dtype(b)));
  row.cells.push_back(shape(n));
  row.cells.push_back(shape(b));
  add_statistics(row, n.found ? &n.statistics : nullptr, traits);
  add_statistics(row, b.found ? &b.statistics : nullptr, traits);

  std::vector<std::string> messages = tensor_obstacles(row, n, b, traits);
  TensorMetrics metrics;
  if (messages.empty()) {
    try {
      metrics = compare_tensors(n.tensor, b.tensor, measure);
      if (metrics.status == MetricStatus::not_applicable) {
        messages.push_back(metrics.messages.back());
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
    add_verdict(row, "", messages, traits);
    for (std::size_t i = 0; i < kMetrics; ++i) row.cells.push_back(absent(traits));
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

ListedRow statistics_row(const GraphItem* target, const GraphItem* golden, const GraphTraits& traits) {
  ListedRow row;
  start_row(row, target, golden);
  row.name = target != nullptr ? target->key : golden->key;
  const auto text = [&](const GraphItem* item, std::string GraphItem::*field) -> ListedCell {
    return item != nullptr ? ListedCell(item->*field) : absent(traits);
  };
  const auto shape = [&](const GraphItem* item) -> ListedCell {
    if (item != nullptr) return bracketed(item->shape);
    return std::string(traits.absent_shape_of_summary);
  };
  Statistics n{};
  Statistics b{};
  for (std::size_t i = 0; i < kStatistics; ++i) {
    const auto value = [&](double written) {
      return traits.in_float32 ? static_cast<double>(static_cast<float>(written)) : written;
    };
    if (target != nullptr) n[i] = value(target->statistics[i]);
    if (golden != nullptr) b[i] = value(golden->statistics[i]);
  }
  row.cells = {text(target, &GraphItem::key),
               text(golden, &GraphItem::key),
               text(target, &GraphItem::dtype),
               text(golden, &GraphItem::dtype),
               shape(target),
               shape(golden)};
  add_statistics(row, target != nullptr ? &n : nullptr, traits);
  add_statistics(row, golden != nullptr ? &b : nullptr, traits);

  const std::vector<std::string> messages = statistics_obstacles(row, target, golden, traits);
  if (!messages.empty()) {
    add_verdict(row, "", messages, traits);
    for (std::size_t i = 0; i < 2 * kStatistics; ++i) row.cells.push_back(absent(traits));
  } else {
    std::array<StatisticDifference, kStatistics> differences;
    bool one_sided_nan = false;
    for (std::size_t i = 0; i < kStatistics; ++i) {
      differences[i] = traits.in_float32
                           ? difference_in_float32(static_cast<float>(n[i]), static_cast<float>(b[i]))
                           : difference_of(n[i], b[i]);
      one_sided_nan = one_sided_nan || std::isnan(n[i]) != std::isnan(b[i]);
    }
    const double off = magnitude(differences[kMax].value, n[kMax], b[kMax], traits);
    const bool good = off <= kMostMagnitude && (traits.one_sided_nan_passes || !one_sided_nan);
    add_verdict(row, good ? "Yes" : "No", {}, traits);
    for (const StatisticDifference& each : differences) row.cells.push_back(number(each.value, traits));
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
