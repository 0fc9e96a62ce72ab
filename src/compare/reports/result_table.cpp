// SPDX-License-Identifier: Apache-2.0
#include "compare/reports/result_table.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "compare/metrics/statistics_difference.hpp"
#include "compare/reports/severity.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using report::Cell;
using report::Scratch;
using report::Structured;
using report::Text;

constexpr std::array<const char*, kStatistics> kStatisticNames = {"max", "min", "mean", "l2norm"};
constexpr std::array<const char*, kMetrics> kMetricNames = {"Cosine",
                                                            "EucDist",
                                                            "MaxAbsErr",
                                                            "MaxRelativeErr",
                                                            "One Thousandth Err Ratio",
                                                            "Five Thousandths Err Ratio"};

std::string to_json(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ", ";
    out += nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
  return out + "]";
}

std::string python_list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ", ";
    out += python_repr(text);
  }
  return out + "]";
}

std::string_view grad_text(Trilean requires_grad) {
  switch (requires_grad) {
    case Trilean::unknown:
      return "N/A";
    case Trilean::no:
      return "False";
    case Trilean::yes:
      break;
  }
  return "True";
}

/// Shapes are JSON already when they are a list of numbers.
Cell shape_cell(std::string_view shape) {
  if (shape.starts_with('[') && shape.find_first_not_of("[]0123456789, ") == std::string_view::npos) {
    return Structured{shape, shape};
  }
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

class ResultTable final : public report::Table {
 public:
  explicit ResultTable(const RankResult& result) : result_(result) {
    columns_ = {"NPU Name",         "Bench Name",         "NPU Dtype",         "Bench Dtype",
                "NPU Tensor Shape", "Bench Tensor Shape", "NPU Requires_grad", "Bench Requires_grad"};
    for (std::string& name : metric_columns(result.mode)) columns_.push_back(std::move(name));
    if (result.mode == Mode::md5) {
      columns_.emplace_back("NPU MD5");
      columns_.emplace_back("BENCH MD5");
    } else {
      for (const char* side : {"NPU ", "Bench "}) {
        for (const char* name : kStatisticNames) columns_.push_back(std::string(side) + name);
      }
    }
    for (const char* name : {"Requires_grad Consistent", "Result", "Err_message"})
      columns_.emplace_back(name);
    if (result.target.stacks) columns_.emplace_back("NPU_Stack_Info");
    if (result.mode == Mode::tensor) columns_.emplace_back("Data_name");
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return result_.rows.size(); }
  report::Severity severity(std::size_t index) const override {
    return severity_of(result_.rows[index].verdict);
  }

  void row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const override {
    cells.clear();
    scratch.clear();
    append_row(index, cells, scratch);
  }

  void append_row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const {
    const Row& row = result_.rows[index];
    const Side& target = result_.target;
    const Side& golden = result_.golden;
    const Item* item = result_.find_target(row);
    const Item* bench = result_.find_golden(row);
    const auto text = [](const Side& side, const Item* one, std::uint32_t Item::*field) {
      return one ? side.text(one->*field) : std::string_view("N/A");
    };
    const std::string_view grad = item ? grad_text(item->requires_grad) : "N/A";
    const std::string_view bench_grad = bench ? grad_text(bench->requires_grad) : "N/A";
    cells.push_back(Text{text(target, item, &Item::name)});
    cells.push_back(Text{text(golden, bench, &Item::name)});
    cells.push_back(Text{text(target, item, &Item::dtype)});
    cells.push_back(Text{text(golden, bench, &Item::dtype)});
    cells.push_back(shape_cell(text(target, item, &Item::shape)));
    cells.push_back(shape_cell(text(golden, bench, &Item::shape)));
    cells.push_back(Text{grad});
    cells.push_back(Text{bench_grad});
    if (result_.mode == Mode::tensor) add_metrics(result_.metrics[index], cells);
    if (result_.mode == Mode::statistics) add_differences(item, bench, cells, scratch);
    if (result_.mode == Mode::md5) {
      cells.push_back(Text{item ? checksum_text(target, *item) : "N/A"});
      cells.push_back(Text{bench ? checksum_text(golden, *bench) : "N/A"});
    } else {
      add_statistics(target, item, cells, scratch);
      add_statistics(golden, bench, cells, scratch);
    }
    cells.push_back(grad == bench_grad);
    cells.push_back(Text{verdict_name(row.verdict)});
    if (row.messages.empty()) {
      cells.push_back(Structured{"[]", "[]"});
    } else {
      const std::string_view messages = scratch.keep(to_json(row.messages));
      cells.push_back(Structured{messages, messages});
    }
    if (target.stacks) add_stack(index, item, cells, scratch);
    if (result_.mode == Mode::tensor) add_data_name(item, bench, cells, scratch);
  }

 private:
  std::string_view checksum_text(const Side& side, const Item& item) const {
    if (result_.checksums_lost) return "";
    if (!result_.python_rules && item.is_tensor && !item.has_checksum) return "N/A";
    return item.checksum == 0 ? std::string_view("N/A") : side.text(item.checksum);
  }

  static void add_metrics(const TensorMetrics& metrics, std::vector<Cell>& cells) {
    for (std::size_t i = 0; i < kMetrics; ++i) {
      switch (metrics.status) {
        case MetricStatus::unsupported:
          cells.push_back(Text{"unsupported"});
          continue;
        case MetricStatus::shape_unmatched:
          cells.push_back(Text{"shape unmatched"});
          continue;
        case MetricStatus::not_applicable:
          cells.push_back(Text{"N/A"});
          continue;
        case MetricStatus::computed:
          break;
      }
      if (metrics.is_scalar && i != kMaxAbs && i != kMaxRelative) {
        cells.push_back(Text{"unsupported"});
      } else {
        cells.push_back(metrics.value[i]);
      }
    }
  }

  static void add_statistics(const Side& side, const Item* item, std::vector<Cell>& cells, Scratch& scratch) {
    if (item == nullptr) {
      cells.insert(cells.end(), kStatistics, Cell(Text{"N/A"}));
      return;
    }
    for (std::size_t i = 0; i < kStatistics; ++i)
      cells.push_back(value_cell(item->statistics[i], side.pool, scratch));
  }

  void add_differences(const Item* item, const Item* bench, std::vector<Cell>& cells,
                       Scratch& scratch) const {
    if (item == nullptr || bench == nullptr) {
      cells.insert(cells.end(), 2 * kStatistics, Cell(Text{"N/A"}));
      return;
    }
    std::array<ValueDifference, kStatistics> differences;
    for (std::size_t i = 0; i < kStatistics; ++i) {
      differences[i] = difference(item->statistics[i], result_.target.pool, bench->statistics[i],
                                  result_.golden.pool, result_.python_rules);
    }
    for (const ValueDifference& each : differences) {
      if (each.kind == DifferenceKind::zero) {
        cells.push_back(Structured{"0", "0"});
      } else {
        const std::string_view text = scratch.keep(difference_text(each));
        const bool number = each.kind == DifferenceKind::number && std::isfinite(each.difference);
        cells.push_back(number ? Cell(Structured{text, text}) : Cell(Text{text}));
      }
    }
    for (const ValueDifference& each : differences) {
      if (each.kind == DifferenceKind::zero) {
        cells.push_back(Structured{"0", "0"});
      } else {
        cells.push_back(Text{scratch.keep(relative_text(each))});
      }
    }
  }

  void add_stack(std::size_t index, const Item* item, std::vector<Cell>& cells, Scratch& scratch) const {
    const Item* before = index == 0 ? nullptr : result_.find_target(result_.rows[index - 1]);
    const bool first = item != nullptr && (before == nullptr || before->api != item->api);
    const auto* frames =
        first ? result_.target.stacks->find(result_.target.text(result_.target.apis[item->api].name))
              : nullptr;
    if (frames == nullptr) {
      cells.push_back(Text{"N/A"});
      return;
    }
    const std::string_view text = scratch.keep(python_list(*frames));
    cells.push_back(Structured{text, scratch.keep(to_json(*frames))});
  }

  void add_data_name(const Item* item, const Item* bench, std::vector<Cell>& cells, Scratch& scratch) const {
    const auto name = [](const Side& side, const Item* one) {
      if (one == nullptr) return std::string("N/A");
      return one->data_name == 0 ? std::string("-1") : std::string(side.text(one->data_name));
    };
    const std::vector<std::string> names = {name(result_.target, item), name(result_.golden, bench)};
    const std::string_view text = scratch.keep(python_list(names));
    cells.push_back(Structured{text, scratch.keep(to_json(names))});
  }

  const RankResult& result_;
  std::vector<std::string> columns_;
};

class JoinedTable final : public report::Table {
 public:
  explicit JoinedTable(const std::vector<const RankResult*>& results) : results_(results) {
    for (const RankResult* result : results_) {
      parts_.push_back(std::make_unique<ResultTable>(*result));
      ends_.push_back(parts_.back()->rows() + (ends_.empty() ? 0 : ends_.back()));
      if (parts_.back()->columns() != parts_.front()->columns()) {
        throw UsageError("the ranks give tables with different columns, which do not fit into one file",
                         "leave out --output-file to get one file for each rank");
      }
    }
    steps_ = std::any_of(results_.begin(), results_.end(),
                         [](const RankResult* one) { return !one->step.empty(); });
    if (steps_) columns_.emplace_back("Step");
    columns_.emplace_back("Rank");
    columns_.insert(columns_.end(), parts_.front()->columns().begin(), parts_.front()->columns().end());
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return ends_.back(); }
  report::Severity severity(std::size_t index) const override {
    const std::size_t part = part_of(index);
    return parts_[part]->severity(index - begin(part));
  }
  void row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const override {
    const std::size_t part = part_of(index);
    cells.clear();
    scratch.clear();
    if (steps_) cells.push_back(Text{results_[part]->step});
    cells.push_back(Text{results_[part]->rank});
    parts_[part]->append_row(index - begin(part), cells, scratch);
  }

 private:
  std::size_t part_of(std::size_t index) const {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  }
  std::size_t begin(std::size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }

  std::vector<const RankResult*> results_;
  std::vector<std::unique_ptr<ResultTable>> parts_;
  std::vector<std::size_t> ends_;
  std::vector<std::string> columns_;
  bool steps_ = false;
};

}  // namespace

std::vector<std::string> metric_columns(Mode mode) {
  if (mode == Mode::tensor) return {kMetricNames.begin(), kMetricNames.end()};
  if (mode == Mode::md5) return {};
  return {"Max diff",       "Min diff",       "Mean diff",       "L2norm diff",
          "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"};
}

std::unique_ptr<report::Table> result_table(const RankResult& result) {
  return std::make_unique<ResultTable>(result);
}

std::unique_ptr<report::Table> joined_table(const std::vector<const RankResult*>& results) {
  return std::make_unique<JoinedTable>(results);
}

}  // namespace msprobe::compare
