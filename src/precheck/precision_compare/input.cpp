// SPDX-License-Identifier: Apache-2.0
#include "precheck/precision_compare/input.hpp"

#include <optional>
#include <utility>

#include "sheets/csv_rows.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

/// The figures that the criteria need.
constexpr std::array kNeeded = {
    Figure::thousandth,    Figure::binary,        Figure::balance,       Figure::rmse,
    Figure::small_share,   Figure::max_relative,  Figure::mean_relative, Figure::inf_nan_rate,
    Figure::relative_rate, Figure::absolute_rate, Figure::mean_ulp,      Figure::ulp_share,
};

FigureField to_figure(std::string_view text) {
  if (trimmed(text).empty()) return {};
  const auto number = parse_number(text);
  if (!number) return {FigureField::FieldKind::text};
  return {FigureField::FieldKind::number, *number};
}

/// The places of the columns that a file may have or must have.
class Columns {
 public:
  Columns(const std::vector<std::string>& header, const std::string& file) : file_(file) {
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (!places_.emplace(header[i], i).second)
        throw FormatError(display(file), "column '" + display(header[i]) + "' appears twice");
    }
  }

  std::optional<std::size_t> find(std::string_view column, bool must) {
    const auto found = places_.find(std::string(column));
    if (found != places_.end()) return found->second;
    if (must) missing_ += (missing_.empty() ? "" : ", ") + std::string(column);
    return std::nullopt;
  }

  void complain() const {
    if (!missing_.empty())
      throw FormatError(display(file_), "not a details file of acc_check: columns are missing: " + missing_);
  }

 private:
  std::string file_;
  std::unordered_map<std::string, std::size_t> places_;
  std::string missing_;
};

}  // namespace

DetailsFile DetailsFile::read(const ByteSource& file) {
  sheets::CsvRows csv(file);
  std::vector<std::string> fields;
  if (!csv.next(fields))
    throw FormatError(display(file.name()), "not a details file of acc_check: it is empty");
  Columns columns(fields, file.name());
  const std::size_t width = fields.size();
  const auto name = columns.find("API Name", true);
  const auto dtype = columns.find("DEVICE Dtype", true);
  const auto shape = columns.find("Shape", false);
  const auto message = columns.find("Message", false);
  std::array<std::size_t, kNeeded.size()> places{};
  for (std::size_t i = 0; i < kNeeded.size(); ++i) {
    // msprobe's file may have English headings.
    const auto english = columns.find(english_column_of(kNeeded[i]), false);
    places[i] = english ? *english : columns.find(column_of(kNeeded[i]), true).value_or(0);
  }
  columns.complain();

  DetailsFile details;
  const auto take = [&](std::optional<std::size_t> place) {
    return place && *place < fields.size() ? std::move(fields[*place]) : std::string();
  };
  while (csv.next(fields)) {
    if (details.rows.size() % 4096 == 0) check_interrupt();
    const std::string where = "line " + std::to_string(csv.line()) + ": ";
    if (fields.size() > width)
      throw FormatError(display(file.name()), where + "more fields than the header has columns");
    if (details.rows.size() == kMostRows) throw FormatError(display(file.name()), where + "too many rows");
    DetailsRow& row = details.rows.emplace_back();
    row.name = take(name);
    row.dtype = take(dtype);
    row.shape = take(shape);
    row.message = take(message);
    for (std::size_t i = 0; i < kNeeded.size(); ++i)
      row.figures[static_cast<std::size_t>(kNeeded[i])] = to_figure(take(places[i]));
  }
  return details;
}

RowsByName::RowsByName(const DetailsFile& file) {
  rows_.reserve(file.rows.size());
  for (std::size_t i = 0; i < file.rows.size(); ++i) {
    const auto [place, added] = rows_.try_emplace(file.rows[i].name, RowsOfName{1, i});
    if (!added) ++place->second.count;
  }
}

RowsByName::RowsOfName RowsByName::find(std::string_view name) const {
  const auto found = rows_.find(name);
  return found != rows_.end() ? found->second : RowsOfName{};
}

}  // namespace msprobe::precheck
