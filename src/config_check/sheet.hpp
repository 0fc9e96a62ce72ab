// SPDX-License-Identifier: Apache-2.0
// The result of comparing one section: a table, a status, and the rows that a person should see.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pack/value.hpp"
#include "report/table.hpp"
#include "support/coverage.hpp"

namespace msprobe::config_check {

enum class SectionStatus : std::uint8_t { pass, warning, error, missing, unreadable };
std::string_view name_of(SectionStatus status);

/// The reason of a section that is missing on both sides.
inline constexpr const char* kInNeither = "in neither pack";

/// The table of a sheet, with counts by severity.
class SheetTable : public report::Table {
 public:
  explicit SheetTable(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t errors() const { return counts_.errors; }
  std::size_t warnings() const { return counts_.warnings; }
  report::Severity worst() const { return counts_.worst(); }
  SectionStatus status() const {
    return errors() != 0     ? SectionStatus::error
           : warnings() != 0 ? SectionStatus::warning
                             : SectionStatus::pass;
  }

 protected:
  void count(report::Severity severity) { counts_.add(severity); }

 private:
  std::vector<std::string> columns_;
  report::SeverityCounts counts_;
};

/// Blank, text, number or Boolean.
using SheetCell = std::variant<std::monostate, std::string, double, std::int64_t, bool>;

/// A value as a cell: containers as Python prints them, null as a blank.
SheetCell cell_of(const pack::PackValue& value);
/// The cell as text for people.
std::string text_of(const SheetCell& cell);

/// A table whose rows are in memory.
class RowTable final : public SheetTable {
 public:
  using SheetTable::SheetTable;
  void add(std::vector<SheetCell> cells, report::Severity severity);
  /// Sorts the rows from `first` on by their texts.
  void sort_from(std::size_t first);
  const std::vector<SheetCell>& cells(std::size_t row) const { return rows_[row].cells; }

  std::size_t rows() const override { return rows_.size(); }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override;
  report::Severity severity(std::size_t index) const override { return rows_[index].severity; }

 private:
  struct SheetRow {
    std::vector<SheetCell> cells;
    report::Severity severity = report::Severity::none;
  };
  std::vector<SheetRow> rows_;
};

struct SheetSection {
  std::string name;
  SectionStatus status = SectionStatus::pass;
  std::unique_ptr<SheetTable> table;      // null if the section is missing or unreadable
  bool unreadable = false;                // completely or in part
  Coverage coverage = {};                 // of the section's keys
  std::vector<std::string> reasons = {};  // why it is missing, or which part could not be read
  std::vector<int> shown = {};            // the columns a summary shows

  report::Severity severity() const;
};

}  // namespace msprobe::config_check
