// SPDX-License-Identifier: Apache-2.0
#include "precheck/precision_compare/tables.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "precheck/result_files/spelling.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::string_view kPythonColumns =
    "API Name,小值域错误比值,小值域判定结果,均方根误差比值,均方根误差判定结果,"
    "相对误差最大值比值,相对误差最大值判定结果,相对误差平均值比值,相对误差平均值判定结果,"
    "误差均衡性比值,误差均衡性判定结果,inf/nan错误率,inf/nan判定结果,相对误差错误率,"
    "相对误差判定结果,绝对误差错误率,绝对误差判定结果,二进制一致错误率,"
    "二进制一致错误率判定结果,ULP误差平均值,ULP误差大于阈值占比,ULP误差大于阈值占比比值,"
    "ULP误差判定结果,双千指标,双千指标判定结果,比对结果,比对算法,Message";
constexpr std::string_view kEnglishColumns =
    "API Name,Small Value Errors Ratio,Small Value Errors Result,RMSE Ratio,RMSE Result,"
    "Max Relative Error Ratio,Max Relative Error Result,Mean Relative Error Ratio,"
    "Mean Relative Error Result,Error Balance Ratio,Error Balance Result,Inf/NaN Error Rate,"
    "Inf/NaN Result,Relative Error Rate,Relative Error Result,Absolute Error Rate,"
    "Absolute Error Result,Unequal,Unequal Result,Mean ULP Error,ULP Errors Above Limit,"
    "ULP Errors Above Limit Ratio,ULP Result,Within 0.1 %,Within 0.1 % Result,Result";
constexpr const char* kBlank = " ";

report::Severity to_severity(PythonStatus status) {
  if (status == PythonStatus::error) return report::Severity::error;
  return status == PythonStatus::skip ? report::Severity::warning : report::Severity::none;
}

/// Appends cells in the form of the output format.
class CellWriter {
 public:
  CellWriter(std::vector<report::Cell>& cells, report::Scratch& scratch, const PrecisionLook& look)
      : cells_(cells), scratch_(scratch), look_(look) {
    cells_.clear();
    scratch_.clear();
  }

  void text(std::string_view text) { cells_.emplace_back(report::Text{text}); }
  void status(PythonStatus status) {
    text(status == PythonStatus::none && !look_.spelled ? std::string_view()
                                                        : status_word(status, Selection::release_26));
  }
  void number(const std::optional<double>& value) {
    if (!value) {
      text(look_.spelled ? kBlank : "");
    } else if (look_.spelled) {
      text(std::isnan(*value) ? "nan" : scratch_.keep(fmt::format("{:.14f}", *value)));
    } else {
      cells_.emplace_back(*value);
    }
  }
  void judged(const Judged& judged) {
    number(judged.value);
    status(judged.status);
  }

 private:
  std::vector<report::Cell>& cells_;
  report::Scratch& scratch_;
  const PrecisionLook& look_;
};

class PairTable final : public report::Table {
 public:
  PairTable(const PrecisionResult& result, const PrecisionLook& look) : result_(result), look_(look) {
    columns_ = report::columns_of(look.english ? kEnglishColumns : kPythonColumns);
    columns_.emplace_back("Reason");
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return result_.rows.size(); }
  report::Severity severity(std::size_t index) const override {
    return to_severity(result_.rows[index].status);
  }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    const PairRow& row = result_.rows[index];
    CellWriter out(cells, scratch, look_);
    out.text(row.name);
    for (const Judged& judged : row.measures) out.judged(judged);
    out.number(row.mean_ulp);
    out.number(row.ulp_share);
    out.number(row.ulp_ratio);
    out.status(row.ulp);
    out.judged(row.thousandth);
    out.status(row.status);
    if (!look_.english) {
      out.text(row.algorithm.empty() && look_.spelled ? kBlank : std::string_view(row.algorithm));
      out.text(row.message);
    }
    out.text(row.reason);
  }

 private:
  const PrecisionResult& result_;
  PrecisionLook look_;
  std::vector<std::string> columns_;
};

class OperationTable final : public report::Table {
 public:
  OperationTable(const PrecisionResult& result, const PrecisionLook& look) : result_(result), look_(look) {
    columns_ = {"API Name", "Forward Test Success", "Backward Test Success"};
    if (!look.english) columns_.emplace_back("Message");
    columns_.emplace_back("Reason");
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return result_.operations.size(); }
  report::Severity severity(std::size_t index) const override {
    return to_severity(result_.operations[index].worst());
  }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    const OperationResult& operation = result_.operations[index];
    CellWriter out(cells, scratch, look_);
    out.text(operation.name);
    out.status(operation.forward);
    out.status(operation.backward);
    if (!look_.english) out.text(operation.message);
    out.text(operation.reason);
  }

 private:
  const PrecisionResult& result_;
  PrecisionLook look_;
  std::vector<std::string> columns_;
};

}  // namespace

std::unique_ptr<report::Table> details_table(const PrecisionResult& result, const PrecisionLook& look) {
  return std::make_unique<PairTable>(result, look);
}

std::unique_ptr<report::Table> operations_table(const PrecisionResult& result, const PrecisionLook& look) {
  return std::make_unique<OperationTable>(result, look);
}

}  // namespace msprobe::precheck
