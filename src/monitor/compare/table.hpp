// SPDX-License-Identifier: Apache-2.0
// A comparison of two runs as a table, the first series that parts in its first row.
#pragma once

#include "monitor/compare/compare.hpp"
#include "report/table.hpp"

namespace msprobe::monitor {

class ComparisonTable final : public report::Table {
 public:
  explicit ComparisonTable(const MonitorComparison& comparison) : comparison_(comparison) {}

  const std::vector<std::string>& columns() const override;
  std::size_t rows() const override { return comparison_.series.size(); }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override;
  report::Severity severity(std::size_t index) const override;
  std::optional<std::vector<std::string>> objects() const override;

 private:
  const MonitorComparison& comparison_;
};

}  // namespace msprobe::monitor
