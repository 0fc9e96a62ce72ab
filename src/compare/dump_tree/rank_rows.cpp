// SPDX-License-Identifier: Apache-2.0
#include "compare/dump_tree/rank_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "diagnosis/conclusion.hpp"
#include "diagnosis/sentences.hpp"
#include "measuring/measures.hpp"
#include "measuring/sum_precision.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {
namespace {

using report::Cell;
using report::Scratch;
using report::Structured;
using report::Text;

constexpr double kWorstWeight = std::numeric_limits<double>::infinity();
constexpr std::array<const char*, kStatistics> kStatisticNames = {"max", "min", "mean", "l2norm"};
constexpr std::array<const char*, kStatistics> kDifferenceNames = {"Max diff", "Min diff", "Mean diff",
                                                                   "L2norm diff"};
constexpr std::array<const char*, kStatistics> kRelativeNames = {"MaxRelativeErr", "MinRelativeErr",
                                                                 "MeanRelativeErr", "NormRelativeErr"};
constexpr std::array<const char*, kMetrics> kMetricNames = {"Cosine",
                                                            "EucDist",
                                                            "MaxAbsErr",
                                                            "MaxRelativeErr",
                                                            "One Thousandth Err Ratio",
                                                            "Five Thousandths Err Ratio"};

/// Dumps of names, types and shapes, which are compared by these.
bool are_structures(const RankResult& result) {
  return result.target.header.task == "structure" && result.golden.header.task == "structure";
}

/// Where checksums are compared: do both items have one?
bool has_checksums(const RankResult& result, const Pair& row) {
  return result.mode != Mode::md5 ||
         (result.target_item(row).has_checksum && result.golden_item(row).has_checksum);
}

/// The texts as a list, each as `append` has it.
template <typename Append>
std::string listed(const std::vector<std::string>& texts, Append&& append) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ", ";
    append(out, text);
  }
  return out + "]";
}

std::string json_list(const std::vector<std::string>& texts) {
  std::string out;
  append_json_list(out, texts);
  return out;
}

std::string python_list(const std::vector<std::string>& texts) {
  return listed(texts, [](std::string& out, const std::string& text) { out += python_repr(text); });
}

std::string_view grad_text(RequiresGrad requires_grad) {
  static constexpr std::array<std::string_view, 3> kTexts = {"N/A", "False", "True"};
  return kTexts[static_cast<std::size_t>(requires_grad)];
}

/// Shapes are JSON already when they are a list of numbers.
Cell shape_cell(std::string_view shape) {
  const auto in_list = [](char c) {
    return (c >= '0' && c <= '9') || c == ',' || c == ' ' || c == '[' || c == ']';
  };
  if (shape.starts_with('[') && std::ranges::all_of(shape, in_list)) return Structured{shape, shape};
  return Text{shape};
}

Cell value_cell(const Value& value, const TextPool& pool, Scratch& scratch) {
  switch (value.kind) {
    case ValueKind::integer:
      return value.integer;
    case ValueKind::real:
      return value.real;
    default:
      return Text{scratch.keep(to_text(value, pool))};
  }
}

/// By the relative error.
void weigh_relative(const ValueDifference& each, NotedRow& noted) {
  const double fraction = relative_fraction(each);
  noted.weight = std::isnan(fraction) ? kWorstWeight : fraction;
  noted.measure = std::isfinite(fraction) ? fmt::format("{:.4g}%", fraction * 100)
                                          : report::plain_text(relative_cell(each));
}

double weight_of(const TensorMetrics& metrics, std::size_t metric) {
  const double value = metrics.value[metric];
  const bool is_distance = metric == kEucDist || metric == kMaxAbs || metric == kMaxRelative;
  return std::isnan(value) ? kWorstWeight : is_distance ? value : 1 - value;
}

}  // namespace

RankRows::RankRows(std::shared_ptr<const RankResult> result) : result_(std::move(result)) {
  const Mode mode = result_->mode;
  add(Field::target_name, "NPU Name");
  add(Field::golden_name, "Bench Name");
  add(Field::target_dtype, "NPU Dtype");
  add(Field::golden_dtype, "Bench Dtype");
  add(Field::target_shape, "NPU Tensor Shape");
  add(Field::golden_shape, "Bench Tensor Shape");
  add(Field::target_grad, "NPU Requires_grad");
  add(Field::golden_grad, "Bench Requires_grad");
  if (mode == Mode::tensor) {
    for (std::size_t i = 0; i < kMetrics; ++i) add(Field::metric, kMetricNames[i], i);
  }
  if (mode == Mode::statistics) {
    for (std::size_t i = 0; i < kStatistics; ++i) add(Field::difference, kDifferenceNames[i], i);
    for (std::size_t i = 0; i < kStatistics; ++i) add(Field::relative, kRelativeNames[i], i);
  }
  if (mode == Mode::md5) {
    add(Field::target_checksum, "NPU MD5");
    add(Field::golden_checksum, "BENCH MD5");
  } else {
    for (std::size_t i = 0; i < kStatistics; ++i)
      add(Field::target_statistic, std::string("NPU ") + kStatisticNames[i], i);
    for (std::size_t i = 0; i < kStatistics; ++i)
      add(Field::golden_statistic, std::string("Bench ") + kStatisticNames[i], i);
  }
  add(Field::same_grad, "Requires_grad Consistent");
  add(Field::verdict, "Result");
  add(Field::messages, "Err_message");
  if (result_->target.stacks) add(Field::stack, "NPU_Stack_Info");
  if (mode == Mode::tensor) add(Field::data_names, "Data_name");
  if (result_->diagnosis) {
    add(Field::error, "Error");
    add(Field::origin, "Origin");
    add(Field::evidence, "Evidence");
  }
}

RankRows RankRows::of(const RankResult& result) {
  return RankRows(std::shared_ptr<const RankResult>(std::shared_ptr<const RankResult>(), &result));
}

void RankRows::add(Field field, std::string title, std::size_t which) {
  titles_.push_back(title);
  columns_.push_back({field, which, std::move(title)});
}

std::optional<std::size_t> RankRows::place_of(Field field, std::size_t which) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].field == field && columns_[i].which == which) return i;
  }
  return std::nullopt;
}

void RankRows::row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const {
  fill(result_->rows[index], index, cells, scratch);
}

void RankRows::golden_item(std::uint32_t item, std::vector<Cell>& cells, Scratch& scratch) const {
  fill(Pair{.target = kUnmatched, .golden = item}, std::nullopt, cells, scratch);
}

void RankRows::fill(const Pair& row, std::optional<std::size_t> index, std::vector<Cell>& cells,
                    Scratch& scratch) const {
  cells.clear();
  scratch.clear();
  const Side& target = result_->target;
  const Side& golden = result_->golden;
  const Item* item = result_->find_target(row);
  const Item* bench = result_->find_golden(row);
  const auto text = [](const Side& side, const Item* one, std::uint32_t Item::*field) {
    return one ? side.text(one->*field) : std::string_view("N/A");
  };
  const std::string_view grad = item ? grad_text(item->requires_grad) : "N/A";
  const std::string_view bench_grad = bench ? grad_text(bench->requires_grad) : "N/A";
  cells.push_back(Text{item ? target.name(*item) : "N/A"});
  cells.push_back(Text{bench ? golden.name(*bench) : "N/A"});
  cells.push_back(Text{text(target, item, &Item::dtype)});
  cells.push_back(Text{text(golden, bench, &Item::dtype)});
  cells.push_back(shape_cell(text(target, item, &Item::shape)));
  cells.push_back(shape_cell(text(golden, bench, &Item::shape)));
  cells.push_back(Text{grad});
  cells.push_back(Text{bench_grad});
  static const TensorMetrics kNothingMeasured;
  if (result_->mode == Mode::tensor) add_metrics(index ? result_->metrics[*index] : kNothingMeasured, cells);
  if (result_->mode == Mode::statistics) add_differences(row, cells);
  if (result_->mode == Mode::md5) {
    const bool has_cell = item && (bench || !result_->checksums_lost);
    cells.push_back(Text{has_cell ? checksum_text(target, *item) : "N/A"});
    cells.push_back(Text{bench ? checksum_text(golden, *bench) : "N/A"});
  } else {
    for (const auto& [side, one] : {std::pair(&target, item), std::pair(&golden, bench)}) {
      for (std::size_t i = 0; i < kStatistics; ++i) {
        cells.push_back(one ? value_cell(one->statistics[i], side->pool, scratch) : Cell(Text{"N/A"}));
      }
    }
  }
  cells.push_back(grad == bench_grad);
  cells.push_back(Text{index ? verdict_name(result_->verdict(*index)) : "N/A"});
  if (!index || result_->findings(*index).empty()) {
    cells.push_back(Structured{"[]", "[]"});
  } else {
    const std::string_view messages = scratch.keep(json_list(messages_of(*result_, *index)));
    cells.push_back(Structured{messages, messages});
  }
  if (target.stacks) add_stack(index, item, cells, scratch);
  if (result_->mode == Mode::tensor) {
    const auto name = [](const Side& side, const Item* one) {
      if (one == nullptr) return std::string("N/A");
      return one->data_name == 0 ? std::string("-1") : std::string(side.text(one->data_name));
    };
    const std::vector<std::string> names = {name(target, item), name(golden, bench)};
    const std::string_view list = scratch.keep(python_list(names));
    cells.push_back(Structured{list, scratch.keep(json_list(names))});
  }
  if (result_->diagnosis) add_diagnosis(row, index, cells, scratch);
}

void RankRows::add_diagnosis(const Pair& row, std::optional<std::size_t> index, std::vector<Cell>& cells,
                             Scratch& scratch) const {
  const diagnosis::RankDiagnosis& diagnosis = *result_->diagnosis;
  // What a mapping pairs otherwise than by place was not judged.
  const bool judged = row.matched() && diagnosis.golden_item[row.target] == row.golden;
  const float error = judged ? diagnosis.error[row.target] : NAN;
  cells.push_back(std::isnan(error) ? Cell(Text{"N/A"}) : Cell(static_cast<double>(error)));
  cells.push_back(Text{name_of(judged ? diagnosis.origin[row.target] : diagnosis::Origin::not_compared)});
  const diagnosis::Finding* finding = index && row.has_target() && is_first_of_entry(*index)
                                          ? diagnosis.finding_of(result_->target_item(row).api)
                                          : nullptr;
  cells.push_back(Text{finding == nullptr ? "" : scratch.keep(diagnosis::evidence_cell(finding))});
}

std::optional<std::vector<std::string>> RankRows::objects() const {
  if (!result_->diagnosis) return std::nullopt;
  return diagnosis::to_json(diagnosis::conclude({*result_->diagnosis}));
}

bool RankRows::is_first_of_entry(std::size_t index) const {
  const Item* item = result_->find_target(result_->rows[index]);
  const Item* before = index == 0 ? nullptr : result_->find_target(result_->rows[index - 1]);
  return item != nullptr && (before == nullptr || before->api != item->api);
}

std::string_view RankRows::checksum_text(const Side& side, const Item& item) const {
  if (result_->checksums_lost) return "";
  if (result_->traits.judge.tensors_need_checksums && item.is_tensor && !item.has_checksum) return "N/A";
  return item.checksum == 0 ? std::string_view("N/A") : side.text(item.checksum);
}

void RankRows::add_metrics(const TensorMetrics& metrics, std::vector<Cell>& cells) const {
  // By status; of what is computed a scalar has not all.
  static constexpr std::array<std::string_view, 5> kAbsent = {"unsupported", "unsupported", "shape unmatched",
                                                              "N/A", "N/A"};
  for (std::size_t i = 0; i < kMetrics; ++i) {
    cells.push_back(metrics.has(i) ? Cell(metrics.value[i])
                                   : Cell(Text{kAbsent[static_cast<std::size_t>(metrics.status)]}));
  }
}

void RankRows::add_differences(const Pair& row, std::vector<Cell>& cells) const {
  std::array<ValueDifference, kStatistics> differences;
  for (std::size_t i = 0; i < kStatistics; ++i) differences[i] = result_->difference(row, i);
  for (const ValueDifference& each : differences) cells.push_back(difference_cell(each));
  for (const ValueDifference& each : differences) cells.push_back(relative_cell(each));
}

void RankRows::add_stack(std::optional<std::size_t> index, const Item* item, std::vector<Cell>& cells,
                         Scratch& scratch) const {
  const auto* frames =
      index && is_first_of_entry(*index)
          ? result_->target.stacks->find(result_->target.text(result_->target.apis[item->api].name))
          : nullptr;
  if (frames == nullptr) {
    cells.push_back(Text{"N/A"});
    return;
  }
  cells.push_back(Structured{scratch.keep(python_list(*frames)), {}, frames});
}

/// Two tensors with elements, of which no statistic is known on both sides. A dump of the structure has none.
bool RankRows::shares_no_statistic(const Pair& row) const {
  if (result_->mode != Mode::statistics || !row.matched() || result_->is_left_out(row)) return false;
  if (are_structures(*result_)) return false;
  const dump::Item& ours = result_->target_item(row);
  const dump::Item& theirs = result_->golden_item(row);
  if (!ours.is_tensor || !theirs.is_tensor) return false;
  for (std::size_t i = 0; i < dump::kStatistics; ++i) {
    if (is_known(result_->target, ours, i) && is_known(result_->golden, theirs, i)) return false;
  }
  return measuring::elements_of(result_->target.text(ours.shape)) > 0;
}

/// Two tensors of which every recorded statistic is NaN, and where there are files every element, too.
bool RankRows::is_nan_throughout(std::size_t index) const {
  const Pair& row = result_->rows[index];
  if (result_->mode == Mode::md5 || !row.matched() || result_->is_left_out(row)) return false;
  if (!result_->target_item(row).is_tensor) return false;
  if (!result_->metrics.empty() &&
      (result_->metrics[index].measure.norm_target > 0 || result_->metrics[index].measure.norm_golden > 0))
    return false;
  bool any = false;
  for (const Side* side : {&result_->target, &result_->golden}) {
    const dump::Item& item = side == &result_->target ? result_->target_item(row) : result_->golden_item(row);
    for (std::size_t i = 0; i < dump::kStatistics; ++i) {
      const dump::Value value = item.statistics[i];
      if (!dump::is_recorded(value)) continue;
      if (dump::classify(value, side->pool).type != dump::ValueClass::nan) return false;
      any = true;
    }
  }
  return any;
}

RowFacts RankRows::facts(std::size_t index) const {
  const Pair& row = result_->rows[index];
  const bool unreadable = !result_->metrics.empty() && result_->metrics[index].failed;
  const bool left_out = result_->is_left_out(row);
  const bool unknown = shares_no_statistic(row) || is_nan_throughout(index);
  const bool measured = row.matched() && result_->target_item(row).is_tensor && !unreadable && !left_out &&
                        !unknown && has_checksums(*result_, row);
  const bool alone = !row.has_golden() && row.reason != Unmatched::nothing;
  return {result_->verdict(index), alone, !row.has_target(), unreadable, left_out, unknown, measured};
}

/// Relative error of the norm, or of the maximum where there is no norm.
void RankRows::measure_statistics(const Pair& row, NotedRow& noted) const {
  for (const Statistic which : {kNorm, kMax}) {
    const ValueDifference each = result_->difference(row, which);
    if (std::isnan(relative_fraction(each)) && each.kind != DifferenceKind::nan) continue;
    weigh_relative(each, noted);
    noted.measure = fmt::format("{} {}", kRelativeNames[which], noted.measure);
    return;
  }
}

void RankRows::measure_tensors(const TensorMetrics& metrics, NotedRow& noted) const {
  if (metrics.status == MetricStatus::computed) {
    const Metric which = metrics.is_scalar ? kMaxRelative : kCosine;
    noted.measure = fmt::format("{} {:.6g}", kMetricNames[which], metrics.value[which]);
    noted.weight = weight_of(metrics, which);
  } else if (metrics.status != MetricStatus::unsupported) {
    const bool places = metrics.status == MetricStatus::not_applicable;
    noted.measure = places ? "NaN or Inf at other places" : "shapes differ";
    noted.weight = kWorstWeight;
  }
}

/// The number that says most about a row, and how bad it is.
void RankRows::measure(std::size_t index, std::optional<Rule> rule, NotedRow& noted) const {
  const Pair& row = result_->rows[index];
  if (!row.matched() || result_->mode == Mode::md5) return;
  if (result_->mode == Mode::tensor) {
    measure_tensors(result_->metrics[index], noted);
  } else {
    measure_statistics(row, noted);
  }
  // What the rule speaks of says more than any other number.
  const Side& target = result_->target;
  const Side& golden = result_->golden;
  const Item& item = result_->target_item(row);
  const Item& bench = result_->golden_item(row);
  if (rule == Rule::dtype) {
    noted.measure = fmt::format("dtype {}, not {}", target.text(item.dtype), golden.text(bench.dtype));
  } else if (rule == Rule::shape) {
    noted.measure = fmt::format("shape {}, not {}", target.text(item.shape), golden.text(bench.shape));
  } else if (rule == Rule::scalar_argument) {
    noted.measure = fmt::format("{}, not {}", to_text(item.statistics[kMax], target.pool),
                                to_text(bench.statistics[kMax], golden.pool));
  } else if (rule == Rule::ratio_drop) {
    noted.measure =
        fmt::format("{} {:.4g}", kMetricNames[kOneThousandth], result_->metrics[index].value[kOneThousandth]);
  }
}

void RankRows::describe_row(std::size_t index, NotedRow& noted) const {
  noted.name = std::string(result_->name_of(result_->rows[index]));
  noted.verdict = result_->verdict(index);
  noted.index = index;
}

NotedRow RankRows::note(std::size_t index) const {
  NotedRow noted;
  describe_row(index, noted);
  const std::optional<Rule> rule = decisive_rule(result_->findings(index));
  if (rule) noted.reason = words_of(*rule, *result_, index);
  measure(index, rule, noted);
  return noted;
}

std::vector<std::string> RankRows::metrics() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) {
    if (column.field == Field::metric || column.field == Field::difference || column.field == Field::relative)
      names.push_back(column.title);
  }
  return names;
}

std::vector<std::string> RankRows::all_metrics() {
  std::vector<std::string> names(kMetricNames.begin(), kMetricNames.end());
  names.insert(names.end(), kDifferenceNames.begin(), kDifferenceNames.end());
  for (const char* name : kRelativeNames) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

bool RankRows::weigh(std::size_t index, std::size_t metric, NotedRow& noted) const {
  const Pair& row = result_->rows[index];
  if (!row.matched()) return false;
  if (result_->mode == Mode::tensor) {
    const TensorMetrics& metrics = result_->metrics[index];
    if (!metrics.has(metric)) return false;
    noted.weight = weight_of(metrics, metric);
    noted.measure = fmt::format("{:.6g}", metrics.value[metric]);
  } else {
    const ValueDifference each = result_->difference(row, metric % kStatistics);
    if (each.kind == DifferenceKind::missing || each.kind == DifferenceKind::differ) return false;
    if (metric < kStatistics) {
      const bool finite = each.kind == DifferenceKind::zero || each.kind == DifferenceKind::number;
      noted.weight = finite ? std::abs(each.difference) : kWorstWeight;
      noted.measure = report::plain_text(difference_cell(each));
    } else {
      weigh_relative(each, noted);
    }
  }
  if (!(noted.weight > 0)) return false;
  describe_row(index, noted);
  return true;
}

}  // namespace msprobe::compare
