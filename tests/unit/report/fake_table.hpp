// SPDX-License-Identifier: Apache-2.0
// Tables for the tests of the writers.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "report/table.hpp"
#include "report/writers.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Rows given as cells.
class FakeTable final : public report::Table {
 public:
  FakeTable(std::vector<std::string> columns, std::vector<std::vector<report::Cell>> rows,
            std::vector<report::Severity> severities = {})
      : columns_(std::move(columns)), rows_(std::move(rows)), severities_(std::move(severities)) {}
  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return rows_.size(); }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    scratch.clear();
    cells = rows_.at(index);
  }
  report::Severity severity(std::size_t index) const override {
    return index < severities_.size() ? severities_[index] : report::Severity::none;
  }

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<report::Cell>> rows_;
  std::vector<report::Severity> severities_;
};

/// Any number of rows: `name.INDEX`, the index, half of it, whether it is even. Throws at row `bad`.
class CountingTable final : public report::Table {
 public:
  explicit CountingTable(std::size_t rows, std::size_t bad = std::numeric_limits<std::size_t>::max())
      : rows_(rows), bad_(bad) {}
  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return rows_; }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    if (index == bad_) throw std::runtime_error("bad row");
    scratch.clear();
    cells.clear();
    cells.emplace_back(report::Text{scratch.keep(fmt::format("name.{}", index))});
    cells.emplace_back(static_cast<std::int64_t>(index));
    cells.emplace_back(static_cast<double>(index) / 2);
    cells.emplace_back(index % 2 == 0);
  }
  report::Severity severity(std::size_t index) const override {
    return static_cast<report::Severity>(index % 3);
  }

 private:
  std::vector<std::string> columns_ = {"Name", "Index", "Half", "Even"};
  std::size_t rows_;
  std::size_t bad_;
};

/// The bytes write_file() makes of the table.
inline std::string written(const report::Table& table, report::Format format,
                           const report::WriteOptions& options = {}) {
  const ScratchDirectory scratch;
  const auto files = report::write_file(table, format, scratch / "result", options);
  return files.size() == 1 ? read_file(files.front()) : fmt::format("{} files", files.size());
}

}  // namespace msprobe::test
