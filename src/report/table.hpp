// SPDX-License-Identifier: Apache-2.0
// The model of a result for all writers: named columns, rows that are made on demand, and a severity for each
// row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/severity.hpp"

namespace msprobe::report {

/// A value as text: csv prints it unchanged, a workbook has it as a text cell. JSON writers have it quoted,
/// unless it is itself JSON, or a list of texts.
struct Text {
  std::string_view value;
  std::string_view json = {};
  const std::vector<std::string>* texts = nullptr;  // instead of `json`; any bytes
};

/// A number that a workbook has as text, as in the Python tool: it is computed from the numbers of both
/// sides. Spelled as in Python, with `%` after a percentage; JSON has a string for a percentage and for a
/// number that is not finite.
struct Spelled {
  enum class NumberForm : std::uint8_t { real, integer, percent };
  NumberForm kind = NumberForm::integer;
  double value = 0;          // for every kind
  std::int64_t integer = 0;  // the digits of an integer
};

/// double: csv prints Python's repr, infinities with a leading blank (` inf`), NaN as `Nan`; a workbook gets
/// a number cell, or the texts `inf`, `-inf`, `Nan`. int64: digits / number cell. bool: `True`/`False` /
/// boolean cell. In JSON: numbers, booleans, and the strings "inf", "-inf", "Nan".
using Cell = std::variant<Text, Spelled, double, std::int64_t, bool>;

void append_spelled(std::string& out, const Spelled& number);

/// A cell as text: doubles as Python prints them, `True`, `False`.
std::string plain_text(const Cell& cell);

/// Owns texts that are made while a row is filled.
class Scratch {
 public:
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  /// Keeps the owner of texts that were not made here.
  void keep(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }
  void clear() {
    texts_.clear();
    owner_.reset();
  }

 private:
  std::deque<std::string> texts_;  // elements never move, so views into them stay valid
  std::shared_ptr<const void> owner_;
};

/// The columns of a header: "Name,Status".
std::vector<std::string> columns_of(std::string_view header);

/// Rows of a result. Implementations are immutable while a writer reads, and safe to read from several
/// threads.
class Table {
 public:
  virtual ~Table() = default;
  virtual const std::vector<std::string>& columns() const = 0;
  virtual std::size_t rows() const = 0;
  /// Replaces the contents of `cells` by one cell per column, and of `scratch` by the texts made for them.
  /// The views in the cells are valid until `scratch` changes or the table is destroyed.
  virtual void row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const = 0;
  /// Colours the row in a workbook.
  virtual Severity severity(std::size_t /*index*/) const { return Severity::none; }
  /// Additional JSON objects of one line each, which JSON writers put after the rows. Each has a `kind`; in a
  /// file of lines the rows then have one, too: `row`. Nothing: this kind of table never has such objects.
  virtual std::optional<std::vector<std::string>> objects() const { return std::nullopt; }
};

}  // namespace msprobe::report
