// SPDX-License-Identifier: Apache-2.0
#include "config_check/sheet.hpp"

#include <algorithm>
#include <cmath>

namespace msprobe::config_check {
namespace {

struct ToCell {
  report::Cell operator()(std::monostate) const { return report::Text{}; }
  report::Cell operator()(const std::string& text) const { return report::Text{text}; }
  report::Cell operator()(double value) const { return value; }
  report::Cell operator()(std::int64_t value) const { return value; }
  report::Cell operator()(bool value) const { return value; }
};

}  // namespace

std::string_view name_of(SectionStatus status) {
  constexpr std::string_view kNames[] = {"pass", "warning", "error", "missing", "unreadable"};
  return kNames[static_cast<std::size_t>(status)];
}

report::Severity SheetSection::severity() const {
  // A section that neither run recorded is listed, but it is not a fault.
  const bool in_neither = status == SectionStatus::missing && reasons.front() == kInNeither;
  if (status == SectionStatus::pass || in_neither) return report::Severity::none;
  return status == SectionStatus::warning ? report::Severity::warning : report::Severity::error;
}

SheetCell cell_of(const pack::PackValue& value) {
  switch (value.kind()) {
    case pack::PackValue::Type::null:
      return std::monostate{};
    case pack::PackValue::Type::boolean:
      return value.boolean();
    case pack::PackValue::Type::integer: {
      // Beyond 2^53 a spreadsheet would round.
      constexpr std::size_t kExact = 15;
      if (value.text().size() <= kExact) return static_cast<std::int64_t>(std::stoll(value.text()));
      return value.text();
    }
    case pack::PackValue::Type::real:
      if (std::isfinite(value.number())) return value.number();
      break;
    case pack::PackValue::Type::text:
    case pack::PackValue::Type::list:
    case pack::PackValue::Type::map:
      break;
  }
  return pack::python_str(value);
}

std::string text_of(const SheetCell& cell) {
  return report::plain_text(std::visit(ToCell{}, cell));
}

void RowTable::add(std::vector<SheetCell> cells, report::Severity severity) {
  count(severity);
  rows_.push_back({std::move(cells), severity});
}

void RowTable::sort_from(std::size_t first) {
  std::stable_sort(rows_.begin() + static_cast<std::ptrdiff_t>(first), rows_.end(),
                   [](const SheetRow& a, const SheetRow& b) {
                     for (std::size_t i = 0; i < std::min(a.cells.size(), b.cells.size()); ++i) {
                       const std::string left = text_of(a.cells[i]);
                       const std::string right = text_of(b.cells[i]);
                       if (left != right) return left < right;
                     }
                     return false;
                   });
}

void RowTable::row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const {
  cells.clear();
  scratch.clear();
  for (const SheetCell& cell : rows_[index].cells) cells.push_back(std::visit(ToCell{}, cell));
}

}  // namespace msprobe::config_check
