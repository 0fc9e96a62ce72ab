// SPDX-License-Identifier: Apache-2.0
#include "parse/summary.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "report/terminal.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

/// A row of the table: a file, and the tensor of it unless the file failed as a whole.
struct SummaryRow {
  const FileResult* file = nullptr;
  const TensorResult* tensor = nullptr;
  const std::string& problem() const {
    return tensor == nullptr || (tensor->problem.empty() && tensor->output.empty()) ? file->problem
                                                                                    : tensor->problem;
  }
};

std::vector<SummaryRow> rows_of(const ParseReport& report) {
  std::vector<SummaryRow> rows;
  for (const FileResult& file : report.files) {
    if (file.tensors.empty()) rows.push_back({&file, nullptr});
    for (const TensorResult& tensor : file.tensors) rows.push_back({&file, &tensor});
  }
  return rows;
}

std::string shape_text(const TensorResult& tensor) {
  return tensor.dtype.empty() ? std::string() : fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

std::string dtype_text(const TensorResult& tensor) {
  if (tensor.dtype.empty()) return "bytes";
  if (tensor.written_dtype.empty() || tensor.written_dtype == tensor.dtype) return tensor.dtype;
  return tensor.dtype + " as " + tensor.written_dtype;
}

report::Cell integer_cell(const std::string& digits) {
  if (const auto value = whole_number<std::int64_t>(digits)) return *value;
  return report::Text{digits, digits};  // of uint64
}

bool has_numbers(const SummaryRow& row) {
  return row.tensor != nullptr && row.tensor->statistics && row.tensor->statistics->count > 0;
}

class SummaryTable final : public report::Table {
 public:
  explicit SummaryTable(const ParseReport& report) : rows_(rows_of(report)) {}

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return rows_.size(); }

  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    using report::Text;
    const SummaryRow& row = rows_[index];
    cells.clear();
    scratch.clear();
    const auto text = [&](std::string value) { cells.emplace_back(Text{scratch.keep(std::move(value))}); };
    const bool failed = !row.problem().empty();
    text(valid_utf8(row.file->file));
    text(row.tensor == nullptr ? "" : valid_utf8(row.tensor->name));
    text(failed ? "failed" : "converted");
    text(row.tensor == nullptr ? "" : row.tensor->dtype);
    text(row.tensor == nullptr ? "" : row.tensor->written_dtype);
    text(row.tensor == nullptr ? "" : shape_text(*row.tensor));
    if (has_numbers(row)) {
      const tensor::Statistics& numbers = *row.tensor->statistics;
      if (const auto& range = row.tensor->range) {
        cells.push_back(integer_cell(range->min));
        cells.push_back(integer_cell(range->max));
      } else {
        cells.emplace_back(numbers.min);
        cells.emplace_back(numbers.max);
      }
      cells.emplace_back(numbers.mean());
      cells.emplace_back(numbers.norm());
    } else {
      for (int i = 0; i < 4; ++i) cells.emplace_back(Text{"N/A"});
    }
    text(row.tensor == nullptr ? "" : valid_utf8(row.tensor->output));
    text(valid_utf8(row.problem()));
  }

  report::Severity severity(std::size_t index) const override {
    return rows_[index].problem().empty() ? report::Severity::none : report::Severity::error;
  }

 private:
  std::vector<SummaryRow> rows_;
  std::vector<std::string> columns_ = {"File", "Tensor", "Status", "Dtype", "Written dtype", "Shape",
                                       "Min",  "Max",    "Mean",   "Norm",  "Output",        "Message"};
};

std::string more(std::size_t total, std::size_t shown, const char* what) {
  return total > shown ? fmt::format("  and {} more {}\n", human_count(total - shown), what) : std::string();
}

const char* plural(std::size_t count) {
  return count == 1 ? "" : "s";
}

}  // namespace

std::string render_summary(const ParseReport& report, std::size_t rows, bool color) {
  std::vector<SummaryRow> good;
  std::vector<SummaryRow> bad;
  for (const SummaryRow& row : rows_of(report)) (row.problem().empty() ? good : bad).push_back(row);
  report::TerminalStyle style;
  style.width = report::terminal_width(STDERR_FILENO);
  style.color = color;
  std::string text;
  if (!good.empty()) {
    std::vector<std::vector<std::string>> lines;
    for (const SummaryRow& row : std::span(good).first(std::min(rows, good.size()))) {
      const TensorResult& tensor = *row.tensor;
      std::string name = tensor.output;
      if (!tensor.name.empty() && name.find(tensor.name) == std::string::npos) name += ": " + tensor.name;
      std::vector<std::string> line = {
          std::move(name), dtype_text(tensor), shape_text(tensor), "", "", "", ""};
      if (has_numbers(row)) {
        const tensor::Statistics& numbers = *tensor.statistics;
        line[3] = tensor.range ? tensor.range->min : short_number(numbers.min, 5);
        line[4] = tensor.range ? tensor.range->max : short_number(numbers.max, 5);
        line[5] = short_number(numbers.mean(), 5);
        line[6] = short_number(numbers.norm(), 5);
      }
      lines.push_back(std::move(line));
    }
    text += report::render_columns({"file", "dtype", "shape", "min", "max", "mean", "norm"}, lines, style);
    text += more(good.size(), lines.size(), "tensors");
  }
  if (!bad.empty()) {
    text += report::paint("not converted:", report::Color::red, color) + "\n";
    std::size_t shown = 0;
    for (const SummaryRow& row : std::span(bad).first(std::min(rows, bad.size()))) {
      text += "  " + display(row.file->file);
      if (row.tensor != nullptr && !row.tensor->name.empty()) text += ": " + display(row.tensor->name);
      text += ": " + row.problem() + "\n";
      ++shown;
    }
    text += more(bad.size(), shown, "failures");
  }
  const std::size_t failures = report.failures();
  const std::size_t files = report.files.size();
  text += fmt::format("{} of {} file{} converted", human_count(files - failures), human_count(files),
                      plural(files));
  if (!report.skipped.empty()) {
    text += fmt::format(", {} skipped (.csv, .json and the like)", human_count(report.skipped.size()));
  }
  text += '\n';
  if (!report.failed_list.empty()) text += "the others are in " + display(report.failed_list) + "\n";
  return text;
}

std::unique_ptr<report::Table> summary_table(const ParseReport& report) {
  return std::make_unique<SummaryTable>(report);
}

}  // namespace msprobe::parse
