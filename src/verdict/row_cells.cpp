// SPDX-License-Identifier: Apache-2.0
#include "verdict/row_cells.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "diagnosis/sentences.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::verdict {
namespace {

using dump::Item;
using dump::kStatistics;
using dump::Side;
using measuring::Mode;
using measuring::ValueDifference;
using pairing::Pair;
using report::Cell;
using report::Scratch;
using report::Text;

constexpr std::array<const char*, kStatistics> kStatisticNames = {"max", "min", "mean", "l2norm"};

std::string json_list(const std::vector<std::string>& texts) {
  std::string out;
  append_json_list(out, texts);
  return out;
}

std::string python_list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ", ";
    out += python_repr(text);
  }
  return out + "]";
}

std::string_view grad_text(dump::RequiresGrad requires_grad) {
  static constexpr std::array<std::string_view, 3> kTexts = {"N/A", "False", "True"};
  return kTexts[static_cast<std::size_t>(requires_grad)];
}

/// A shape that is a list of numbers is JSON already.
Cell shape_cell(std::string_view shape) {
  const auto in_list = [](char c) {
    return (c >= '0' && c <= '9') || c == ',' || c == ' ' || c == '[' || c == ']';
  };
  if (shape.starts_with('[') && std::ranges::all_of(shape, in_list)) return Text{shape, shape};
  return Text{shape};
}

Cell value_cell(const dump::RecordedValue& value, const TextPool& pool, Scratch& scratch) {
  switch (value.kind) {
    case dump::ValueKind::integer:
      return value.integer;
    case dump::ValueKind::real:
      return value.real;
    default:
      return Text{scratch.keep(dump::to_text(value, pool))};
  }
}

}  // namespace

Cell metric_cell(const measuring::TensorMetrics& metrics, std::size_t metric) {
  // The text for each status; a scalar lacks some of the computed metrics.
  static constexpr std::array<std::string_view, 5> kAbsent = {"unsupported", "unsupported", "shape unmatched",
                                                              "N/A", "N/A"};
  return metrics.has(metric) ? Cell(metrics.value[metric])
                             : Cell(Text{kAbsent[static_cast<std::size_t>(metrics.status)]});
}

RowCells::RowCells(const RankResult& result) : result_(result) {
  const Mode mode = result_.mode;
  add(Field::target_name, "NPU Name");
  add(Field::golden_name, "Bench Name");
  add(Field::target_dtype, "NPU Dtype");
  add(Field::golden_dtype, "Bench Dtype");
  add(Field::target_shape, "NPU Tensor Shape");
  add(Field::golden_shape, "Bench Tensor Shape");
  add(Field::target_grad, "NPU Requires_grad");
  add(Field::golden_grad, "Bench Requires_grad");
  if (mode == Mode::tensor) {
    for (std::size_t i = 0; i < measuring::kMetrics; ++i) add(Field::metric, kMetricNames[i], i);
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
  if (result_.target.stacks) add(Field::stack, "NPU_Stack_Info");
  if (mode == Mode::tensor) add(Field::data_names, "Data_name");
  if (result_.diagnosis) {
    add(Field::error, "Error");
    add(Field::origin, "Origin");
    add(Field::evidence, "Evidence");
  }
}

void RowCells::add(Field field, std::string title, std::size_t which) {
  columns_.push_back({field, which, std::move(title)});
}

std::optional<std::size_t> RowCells::place_of(Field field, std::size_t which) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].field == field && columns_[i].which == which) return i;
  }
  return std::nullopt;
}

void RowCells::row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const {
  fill(result_.rows[index], index, cells, scratch);
}

void RowCells::golden_item(std::uint32_t item, std::vector<Cell>& cells, Scratch& scratch) const {
  fill(Pair{.target = pairing::kUnmatched, .golden = item}, std::nullopt, cells, scratch);
}

void RowCells::fill(const Pair& row, std::optional<std::size_t> index, std::vector<Cell>& cells,
                    Scratch& scratch) const {
  cells.clear();
  scratch.clear();
  const Side& target = result_.target;
  const Side& golden = result_.golden;
  const Item* item = result_.find_target(row);
  const Item* bench = result_.find_golden(row);
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
  static const measuring::TensorMetrics kNothingMeasured;
  for (std::size_t i = 0; result_.mode == Mode::tensor && i < measuring::kMetrics; ++i)
    cells.push_back(metric_cell(index ? result_.metrics[*index] : kNothingMeasured, i));
  if (result_.mode == Mode::statistics) add_differences(row, cells);
  if (result_.mode == Mode::md5) {
    cells.push_back(Text{item ? checksum_text(target, *item) : "N/A"});
    cells.push_back(Text{bench ? checksum_text(golden, *bench) : "N/A"});
  } else {
    for (const auto& [side, one] : {std::pair(&target, item), std::pair(&golden, bench)}) {
      for (std::size_t i = 0; i < kStatistics; ++i) {
        cells.push_back(one ? value_cell(one->statistics[i], side->pool, scratch) : Cell(Text{"N/A"}));
      }
    }
  }
  cells.push_back(grad == bench_grad);
  cells.push_back(Text{index ? verdict_name(result_.verdict(*index)) : "N/A"});
  const std::string_view messages =
      scratch.keep(json_list(index ? messages_of(result_, *index) : std::vector<std::string>()));
  cells.push_back(Text{messages, messages});
  if (target.stacks) add_stack(index, item, cells, scratch);
  if (result_.mode == Mode::tensor) {
    const auto name = [](const Side& side, const Item* one) {
      if (one == nullptr) return std::string("N/A");
      return one->data_name == 0 ? std::string("-1") : std::string(side.text(one->data_name));
    };
    const std::vector<std::string> names = {name(target, item), name(golden, bench)};
    const std::string_view list = scratch.keep(python_list(names));
    cells.push_back(Text{list, scratch.keep(json_list(names))});
  }
  if (result_.diagnosis) add_diagnosis(row, index, cells, scratch);
}

void RowCells::add_diagnosis(const Pair& row, std::optional<std::size_t> index, std::vector<Cell>& cells,
                             Scratch& scratch) const {
  const diagnosis::RankDiagnosis& diagnosis = *result_.diagnosis;
  const float error = result_.is_diagnosed(row) ? diagnosis.error[row.target] : NAN;
  cells.push_back(std::isnan(error) ? Cell(Text{"N/A"}) : Cell(static_cast<double>(error)));
  cells.push_back(Text{diagnosis::name_of(result_.origin(row))});
  const diagnosis::Finding* finding = index && row.has_target() && is_first_of_entry(*index)
                                          ? diagnosis.finding_of(result_.target_item(row).api)
                                          : nullptr;
  cells.push_back(Text{finding == nullptr ? "" : scratch.keep(diagnosis::evidence_cell(finding))});
}

bool RowCells::is_first_of_entry(std::size_t index) const {
  const Item* item = result_.find_target(result_.rows[index]);
  const Item* before = index == 0 ? nullptr : result_.find_target(result_.rows[index - 1]);
  return item != nullptr && (before == nullptr || before->api != item->api);
}

std::string_view RowCells::checksum_text(const Side& side, const Item& item) const {
  constexpr std::string_view kOfNothing = "00000000";
  const std::string_view text = item.checksum == 0 ? std::string_view() : side.text(item.checksum);
  const bool none = !result_.python.tensors_without_checksum && item.is_tensor && !item.has_checksum;
  return text.empty() || (none && text == kOfNothing) ? std::string_view("N/A") : text;
}

void RowCells::add_differences(const Pair& row, std::vector<Cell>& cells) const {
  std::array<ValueDifference, kStatistics> differences;
  for (std::size_t i = 0; i < kStatistics; ++i) differences[i] = result_.difference(row, i);
  for (const ValueDifference& each : differences) cells.push_back(measuring::difference_cell(each));
  for (const ValueDifference& each : differences) cells.push_back(measuring::relative_cell(each));
}

void RowCells::add_stack(std::optional<std::size_t> index, const Item* item, std::vector<Cell>& cells,
                         Scratch& scratch) const {
  const auto* frames =
      index && is_first_of_entry(*index)
          ? result_.target.stacks->find(result_.target.text(result_.target.apis[item->api].name))
          : nullptr;
  if (frames == nullptr) {
    cells.push_back(Text{"N/A"});
    return;
  }
  cells.push_back(Text{scratch.keep(python_list(*frames)), {}, frames});
}

}  // namespace msprobe::verdict
