// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/recorded_statistics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "dump/recorded_call.hpp"
#include "precheck/calls/not_rebuilt.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"

namespace msprobe::precheck {
namespace {

using dump::Entry;
using Node = Entry::Index;

constexpr const char* kNoTensors = "its outputs were not dumped as tensors";
// A kernel may be off by this many units of the recorded type. The judgement of single elements is stricter.
constexpr double kUnits = 64;
constexpr double kSumUnits = 8;  // of float32, for each root of the number of elements

enum Figures { kMaximum, kMinimum, kMeanValue, kNormValue, kFigures };
constexpr std::array<std::string_view, kFigures> kFigureNames{"Max", "Min", "Mean", "Norm"};

struct MeasuredFigures {
  std::array<double, kFigures> figures{};
  std::uint64_t count = 0;
};

MeasuredFigures measure_reference(const TensorOutput& tensor) {
  const std::size_t width = tensor::info(tensor.dtype).size;
  MeasuredFigures result;
  result.count = tensor.bytes.size() / width;
  double most = -std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();
  double sum = 0;
  double squares = 0;
  bool undefined = false;
  constexpr std::size_t kBlock = 4096;
  std::array<double, kBlock> values{};
  for (std::size_t at = 0; at < result.count; at += kBlock) {
    const auto block = std::span(values).first(std::min<std::uint64_t>(kBlock, result.count - at));
    tensor::to_double(tensor.dtype, tensor.bytes.subspan(at * width, block.size() * width), block);
    for (const double value : block) {
      undefined = undefined || std::isnan(value);
      most = std::max(most, value);
      least = std::min(least, value);
      sum += value;
      squares += value * value;
    }
  }
  const double none = std::numeric_limits<double>::quiet_NaN();
  result.figures = {undefined ? none : most, undefined ? none : least,
                    sum / static_cast<double>(result.count), std::sqrt(squares)};
  return result;
}

bool agree(double recorded, double reference, double tolerance) {
  if (std::isnan(recorded) || std::isnan(reference)) return std::isnan(recorded) && std::isnan(reference);
  return recorded == reference || std::fabs(recorded - reference) <= tolerance;
}

void flatten(const CallOutput& output, std::vector<const TensorOutput*>& tensors) {
  if (const auto* list = std::get_if<CallOutput::List>(&output.value)) {
    for (const CallOutput& element : list->elements) flatten(element, tensors);
  } else if (const auto* tensor = std::get_if<TensorOutput>(&output.value)) {
    tensors.push_back(tensor);
  }
}

OutputRow judge_one_by_statistics(const Entry& entry, Node node, const TensorOutput& reference) {
  const auto dtype = tensor::dtype_from_name(entry.string(node, "dtype"));
  if (!dtype) throw NotRebuilt(kNoTensors);
  OutputRow row;
  row.reference_dtype = fmt::format("torch.{}", tensor::info(reference.dtype).name);
  row.device_dtype = fmt::format("torch.{}", tensor::info(*dtype).name);
  row.shape = fmt::format("({}{})", fmt::join(reference.shape, ", "), reference.shape.size() == 1 ? "," : "");
  row.status = PythonStatus::skip;
  row.message = kNoTensors;
  row.verdict = PrecheckVerdict::pass;
  row.reason = "by its statistics only";
  const MeasuredFigures made = measure_reference(reference);
  if (made.count == 0) return row;
  const bool exact = tensor::info(*dtype).kind != tensor::DTypeKind::floating;
  const double root = std::sqrt(static_cast<double>(made.count));
  const double rounding = kUnits * tensor::unit_roundoff(*dtype);
  const double summing = rounding + kSumUnits * 0x1p-24 * root;
  const double largest = std::max(std::fabs(made.figures[kMaximum]), std::fabs(made.figures[kMinimum]));
  const std::array<double, kFigures> tolerances{
      exact ? 0 : rounding * largest, exact ? 0 : rounding * largest,
      summing * made.figures[kNormValue] / root, summing * made.figures[kNormValue]};
  int known = 0;
  for (std::size_t i = 0; i < kFigures; ++i) {
    const Node figure = entry.find(node, kFigureNames[i]);
    if (!entry.is_number(figure)) continue;
    ++known;
    const double recorded = entry.number(figure);
    if (agree(recorded, made.figures[i], tolerances[i])) continue;
    row.verdict = PrecheckVerdict::error;
    row.reason = fmt::format("{} is {} instead of {}, by statistics only", kFigureNames[i],
                             short_number(recorded, 6), short_number(made.figures[i], 6));
    break;
  }
  if (known == 0) throw NotRebuilt(kNoTensors);
  return row;
}

}  // namespace

CallJudgement judge_recorded_statistics(const std::string& prefix, const Entry& entry,
                                        const CallOutput& reference, bool first_alone) {
  std::vector<const TensorOutput*> made;
  flatten(reference, made);
  std::vector<Node> recorded = dump::tensors_in(entry, entry.find(0, "output"));
  if (first_alone && recorded.size() > 1) recorded.resize(1);
  const auto is_complex = [](const TensorOutput* tensor) {
    return tensor::info(tensor->dtype).kind == tensor::DTypeKind::complex;
  };
  if (made.empty() || made.size() != recorded.size() || std::ranges::any_of(made, is_complex))
    throw NotRebuilt(kNoTensors);
  CallJudgement judgement;
  judgement.status = PythonStatus::skip;
  for (std::size_t i = 0; i < made.size(); ++i) {
    OutputRow row = judge_one_by_statistics(entry, recorded[i], *made[i]);
    row.name = prefix + std::to_string(i);
    if (row.verdict > judgement.verdict) {
      judgement.verdict = row.verdict;
      judgement.reason = made.size() > 1 ? fmt::format("output {}: {}", i, row.reason) : row.reason;
    }
    judgement.rows.push_back(std::move(row));
  }
  return judgement;
}

}  // namespace msprobe::precheck
