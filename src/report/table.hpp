// SPDX-License-Identifier: Apache-2.0
// The one model of a result that every writer takes: named columns, rows made on demand, a verdict a row.
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

/// A value as text that stands as it is in csv and as a text cell in a workbook; JSON writers may know better
/// (below).
struct Text {
  std::string_view value;
};
/// Text that is itself JSON, or a list of texts: JSON writers embed it unquoted, all others take `value`.
struct Structured {
  std::string_view value;  // csv, xlsx
  std::string_view json;
  const std::vector<std::string>* texts = nullptr;  // in place of `json`; any bytes
};

/// A number that a workbook holds as text, as the Python tool's do: what is computed from the numbers of both
/// sides. Spelled as Python does, `%` behind a percentage; JSON takes a percentage, and what is not finite,
/// as a string.
struct Spelled {
  enum class Kind : std::uint8_t { real, integer, percent };
  Kind kind = Kind::integer;
  double value = 0;          // of every kind
  std::int64_t integer = 0;  // the digits of an integer
};

/// double: csv prints Python's repr, infinities with a leading blank (` inf`), NaN as `Nan`; a workbook gets
/// a number cell, or the texts `inf`, `-inf`, `Nan`. int64: digits / number cell. bool: `True`/`False` /
/// boolean cell. In JSON: numbers, booleans, and the strings "inf", "-inf", "Nan".
using Cell = std::variant<Text, Structured, Spelled, double, std::int64_t, bool>;

void append_spelled(std::string& out, const Spelled& number);

/// A cell as text: doubles as Python prints them, `True`, `False`.
std::string plain_text(const Cell& cell);

/// Room for text made while a row is filled.
class Scratch {
 public:
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  /// What texts lie in that were not made here.
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
  /// Replaces the contents of `cells` with one cell a column, and of `scratch` with the text made on the way.
  /// The views in the cells stay valid until `scratch` changes or the table goes.
  virtual void row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const = 0;
  /// Colours the row in a workbook.
  virtual Severity severity(std::size_t index) const = 0;
  /// What there is to say besides, as JSON objects of one line each, which JSON writers put behind the rows:
  /// each has a `kind`, and rows of a file of lines then get one, too: `row`. Nothing: never anything.
  virtual std::optional<std::vector<std::string>> objects() const { return std::nullopt; }
};

}  // namespace msprobe::report
