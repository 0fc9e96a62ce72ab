// SPDX-License-Identifier: Apache-2.0
#include "compare/static_graph/graph_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "dump/value.hpp"
#include "formats/element_values.hpp"
#include "formats/npy.hpp"
#include "measuring/tensor_metrics.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using dump::kMax;
using dump::kStatistics;
using formats::StoredTensor;
using measuring::kMaxAbs;
using measuring::MetricStatus;
using verdict::Verdict;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostMagnitude = 0.5;
constexpr double kTinyMagnitude = 1e-10;

const char kEmpty[] = "This is empty data, can not compare.";
const char kShapes[] = "Shape of NPU and bench Tensor do not match.";
const char kTensorShapes[] = "Tensor shapes do not match.";
const char kDtypes[] = "Dtype of NPU and bench Tensor do not match. Skipped.";
const char kNoTarget[] = "Dump file of NPU not found.";
const char kNoGolden[] = "Dump file of Bench not found.";

using Statistics = std::array<double, kStatistics>;

using Messages = std::vector<std::string>;

ListedCell absent() {
  return std::string("N/A");
}

ListedCell text(const GraphItem* item, std::string GraphItem::*field) {
  return item != nullptr ? ListedCell(item->*field) : absent();
}

void add_statistics(ListedRow& row, const Statistics* statistics) {
  for (std::size_t i = 0; i < kStatistics; ++i) {
    row.cells.push_back(statistics == nullptr ? absent() : ListedCell((*statistics)[i]));
  }
}

std::string unreadable(const std::string& why) {
  return "Dump file not found or read failed. (" + why + ")";
}

ListedRow started(const GraphItem* target, const GraphItem* golden) {
  ListedRow row;
  row.name = target != nullptr ? target->key : golden->key;
  row.target_only = golden == nullptr;
  row.golden_only = target == nullptr;
  return row;
}

/// Adds the cells of a row that was measured.
void add_verdict(ListedRow& row, bool good, const std::string& remarks) {
  row.cells.emplace_back(good ? "Yes" : "No");
  row.cells.emplace_back(remarks);
  if (good) return;
  row.verdict = Verdict::error;
  row.reason = "the accuracy is not reached";
}

/// Adds the cells of a row that was not measured, with the reasons; `measures` cells have no number.
void add_obstacles(ListedRow& row, const Messages& messages, std::size_t measures) {
  row.reason = fmt::format("{}", fmt::join(messages, " "));
  row.cells.emplace_back("");
  row.cells.emplace_back(row.reason);
  row.cells.resize(row.cells.size() + measures, absent());
}

/// The text of a shape with square brackets: spreadsheets read parentheses as a negative number.
std::string bracketed(std::string shape) {
  std::replace(shape.begin(), shape.end(), '(', '[');
  std::replace(shape.begin(), shape.end(), ')', ']');
  return shape;
}

std::string tuple_text(const std::vector<std::int64_t>& shape) {
  return shape.size() == 1 ? fmt::format("[{},]", shape[0]) : fmt::format("[{}]", fmt::join(shape, ", "));
}

// ---- tensors

/// Rounds a number to the stored type, in which NumPy's reductions of floats compute.
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
    side.statistics = {unordered ? kNotANumber : all.max, unordered ? kNotANumber : all.min,
                       in_type(all.mean(), dtype), in_type(all.norm(), dtype)};
    side.found = true;
  } catch (const Error& error) {
    side.failure = error.what();
  }
  return side;
}

/// The rule of release 8.1.1, which still applies to static graphs.
bool reached(const measuring::TensorMetrics& metrics) {
  const double cosine = metrics.value[measuring::kCosine];
  const double error = metrics.value[kMaxAbs];
  if (cosine < 0.99 && error > 0.001) return false;
  return !(cosine < 0.9 || error > 1);
}

/// Says why two arrays are not compared, and sets the row's verdict.
Messages tensor_obstacles(ListedRow& row, const TensorSide& target, const TensorSide& golden) {
  Messages messages;
  for (const TensorSide* side : {&target, &golden}) {
    if (!side->failure.empty()) messages.push_back(unreadable(side->failure));
  }
  row.unreadable = !messages.empty();
  if (!row.unreadable && (!target.found || !golden.found))
    messages.emplace_back(target.found ? kNoGolden : kNoTarget);
  if (!messages.empty()) {
    row.verdict = Verdict::warning;
    return messages;
  }
  const StoredTensor& n = target.tensor;
  const StoredTensor& b = golden.tensor;
  if (n.numel() == 0 || b.numel() == 0) {
    row.verdict = n.shape == b.shape ? Verdict::pass : Verdict::error;
    return {kEmpty};
  }
  if (n.shape != b.shape) messages.emplace_back(kShapes);
  if (n.dtype != b.dtype) messages.emplace_back(kDtypes);
  if (n.shape != b.shape || n.dtype != b.dtype) row.verdict = Verdict::error;
  return messages;
}

// ---- statistics

struct StatisticDifference {
  double value = 0;
  std::string relative;
};

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

/// The difference of the maxima, relative to the larger maximum.
double magnitude(double difference, double target, double golden) {
  if (std::isnan(target) && std::isnan(golden)) return 0;
  if (difference == 0) return 0;
  const double larger = std::max(std::fabs(target), std::fabs(golden));
  return std::isinf(larger) ? std::numeric_limits<double>::infinity()
                            : std::fabs(difference) / (larger + kTinyMagnitude);
}

Messages statistics_obstacles(ListedRow& row, const GraphItem* target, const GraphItem* golden) {
  if (target == nullptr || golden == nullptr) {
    row.verdict = Verdict::warning;
    return {target == nullptr ? kNoTarget : kNoGolden};
  }
  Messages messages;
  const bool shapes = target->shape != golden->shape;
  if (shapes) messages.emplace_back(kTensorShapes);
  if (target->dtype != golden->dtype) messages.emplace_back(kDtypes);
  if (shapes || target->dtype != golden->dtype) row.verdict = Verdict::error;
  return messages;
}

}  // namespace

std::vector<std::string> graph_columns(measuring::Mode mode) {
  const std::string both =
      "NPU Name,Bench Name,NPU Dtype,Bench Dtype,NPU Tensor Shape,Bench Tensor Shape,NPU max,"
      "NPU min,NPU mean,NPU l2norm,Bench max,Bench min,Bench mean,Bench l2norm,"
      "Accuracy Reached or Not,Err_message,";
  return report::columns_of(
      both + (mode == measuring::Mode::tensor
                  ? "Cosine,EucDist,MaxAbsErr,MaxRelativeErr,One Thousandth Err Ratio,"
                    "Five Thousandths Err Ratio"
                  : "Max diff,Min diff,Mean diff,L2norm diff,MaxRelativeErr,MinRelativeErr,MeanRelativeErr,"
                    "NormRelativeErr,NPU CSV File,Bench CSV File"));
}

ListedRow tensor_row(const GraphItem* target, const GraphItem* golden) {
  ListedRow row = started(target, golden);
  const TensorSide sides[] = {open_side(target), open_side(golden)};
  const auto& [n, b] = sides;
  row.cells = {text(target, &GraphItem::file), text(golden, &GraphItem::file)};
  for (const TensorSide& side : sides) {
    row.cells.push_back(side.found ? ListedCell(std::string(tensor::info(side.tensor.dtype).name))
                                   : absent());
  }
  for (const TensorSide& side : sides) {
    row.cells.push_back(side.found ? ListedCell(tuple_text(side.tensor.shape)) : absent());
  }
  for (const TensorSide& side : sides) {
    add_statistics(row, side.found ? &side.statistics : nullptr);
  }
  Messages messages = tensor_obstacles(row, n, b);
  measuring::TensorMetrics metrics;
  if (messages.empty()) {
    try {
      metrics = measuring::compare_tensors(n.tensor, b.tensor, {});
      if (metrics.status == MetricStatus::not_applicable) {
        messages.push_back(metrics.messages.back());
        row.verdict = Verdict::error;
      }
    } catch (const Error& error) {
      metrics.status = MetricStatus::unsupported;
      messages.push_back(unreadable(error.what()));
      row.unreadable = true;
      row.verdict = Verdict::warning;
    }
  }
  if (!messages.empty() || metrics.status != MetricStatus::computed) {
    add_obstacles(row, messages, measuring::kMetrics);
    return row;
  }
  add_verdict(row, metrics.is_scalar ? !(metrics.value[kMaxAbs] > 1) : reached(metrics),
              fmt::format("{}", fmt::join(metrics.messages, " ")));
  row.unknown = std::isnan(n.statistics[kMax]) && std::isnan(b.statistics[kMax]) &&
                !(metrics.measure.norm_target > 0) && !(metrics.measure.norm_golden > 0);
  for (std::size_t i = 0; i < measuring::kMetrics; ++i) {
    if (metrics.is_scalar && i != kMaxAbs && i != measuring::kMaxRelative) {
      row.cells.emplace_back("unsupported");
    } else {
      row.cells.emplace_back(metrics.value[i]);
    }
  }
  row.weigh(metrics);
  return row;
}

ListedRow statistics_row(const GraphItem* target, const GraphItem* golden) {
  ListedRow row = started(target, golden);
  const auto shape = [](const GraphItem* item) {
    return item != nullptr ? ListedCell(bracketed(item->shape)) : absent();
  };
  row.cells = {text(target, &GraphItem::key),
               text(golden, &GraphItem::key),
               text(target, &GraphItem::dtype),
               text(golden, &GraphItem::dtype),
               shape(target),
               shape(golden)};
  add_statistics(row, target != nullptr ? &target->statistics : nullptr);
  add_statistics(row, golden != nullptr ? &golden->statistics : nullptr);

  const Messages messages = statistics_obstacles(row, target, golden);
  if (!messages.empty()) {
    add_obstacles(row, messages, std::size_t{2} * kStatistics);
  } else {
    const Statistics& n = target->statistics;
    const Statistics& b = golden->statistics;
    std::array<StatisticDifference, kStatistics> differences;
    bool one_sided_nan = false;
    row.unknown = true;
    for (std::size_t i = 0; i < kStatistics; ++i) {
      differences[i] = difference_of(n[i], b[i]);
      one_sided_nan = one_sided_nan || std::isnan(n[i]) != std::isnan(b[i]);
      row.unknown = row.unknown && std::isnan(n[i]) && std::isnan(b[i]);
    }
    const double off = magnitude(differences[kMax].value, n[kMax], b[kMax]);
    add_verdict(row, off <= kMostMagnitude && !one_sided_nan, "");
    for (const StatisticDifference& each : differences) row.cells.emplace_back(each.value);
    for (const StatisticDifference& each : differences) row.cells.emplace_back(each.relative);
    row.weight = std::isnan(off) || one_sided_nan ? std::numeric_limits<double>::infinity() : off;
    row.measure = "MaxRelativeErr " + differences[kMax].relative;
  }
  row.cells.push_back(text(target, &GraphItem::file));
  row.cells.push_back(text(golden, &GraphItem::file));
  return row;
}

}  // namespace msprobe::compare
