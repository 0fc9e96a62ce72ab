// SPDX-License-Identifier: Apache-2.0
#include "sheets/xlsx_reader.hpp"

#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "archive/zip_reader.hpp"
#include "sheets/xml_reader.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "support/utf8.hpp"

namespace msprobe::sheets {
namespace {

/// An error in a part; the reader of the workbook adds the place.
class BrokenPart : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// XML cannot hold control characters, so texts have them as `_x0007_`.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::uint32_t code = 0;
    const char* const digits = text.data() + i + 2;
    if (text.size() - i >= 7 && text[i] == '_' && text[i + 1] == 'x' && text[i + 6] == '_' &&
        std::from_chars(digits, digits + 4, code, 16).ptr == digits + 4 && (code < 0xD800 || code > 0xDFFF)) {
      append_utf8(out, code);
      i += 6;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Reads the names of sheets with the numbers of their relations, and relations with their targets.
class WorkbookHandler final : public XmlHandler {
 public:
  void start(std::string_view name, const Attributes& attributes) override {
    if (name == "sheet") sheets.emplace_back(attributes.get("name"), attributes.get("id"));
    if (name == "Relationship") {
      targets.insert_or_assign(std::string(attributes.get("Id")), std::string(attributes.get("Target")));
      if (attributes.get("Type").ends_with("/sharedStrings")) shared = attributes.get("Target");
    }
    if (sheets.size() > most || targets.size() > 4 * most + 16)
      throw BrokenPart("more sheets than are accepted");
  }
  void end(std::string_view) override {}
  void text(std::string_view) override {}

  std::uint64_t most = 0;
  std::vector<std::pair<std::string, std::string>> sheets;
  std::map<std::string, std::string> targets;
  std::string shared;
};

class SharedTexts final : public XmlHandler {
 public:
  explicit SharedTexts(const XlsxLimits& limits) : limits_(limits) {}

  std::size_t size() const { return ends_.size(); }
  std::string_view at(std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(begin, ends_[index] - begin);
  }

  void start(std::string_view name, const Attributes&) override {
    if (name == "rPh") phonetic_ = true;
    if (name == "t") inside_ = !phonetic_;
  }
  void end(std::string_view name) override {
    if (name == "rPh") phonetic_ = false;
    if (name == "t") inside_ = false;
    if (name != "si") return;
    if (text_.find("_x") != std::string::npos) text_ = unescaped(text_);
    if (ends_.size() == limits_.shared_texts || bytes_.size() + text_.size() > limits_.shared_bytes)
      throw BrokenPart("more shared texts than are accepted");
    bytes_ += text_;
    ends_.push_back(bytes_.size());
    text_.clear();
  }
  void text(std::string_view text) override {
    if (!inside_) return;
    if (text_.size() + text.size() > kMostRowText) throw BrokenPart("a text of more than 16 MiB");
    text_ += text;
  }

 private:
  const XlsxLimits& limits_;
  std::string bytes_;
  std::vector<std::uint64_t> ends_;
  std::string text_;
  bool inside_ = false;
  bool phonetic_ = false;
};

class SheetHandler final : public XmlHandler {
 public:
  SheetHandler(const SharedTexts& shared, const RowVisitor& visit, const XlsxLimits& limits)
      : shared_(shared), visit_(visit), limits_(limits) {}

  void start(std::string_view name, const Attributes& attributes) override {
    if (name == "row") {
      if (++rows_ > limits_.rows) throw BrokenPart("more rows than a sheet has");
      cells_.clear();
      text_.clear();
    } else if (name == "c") {
      column_ = cells_.size();
      if (const std::string_view place = attributes.get("r"); !place.empty()) column_ = column_of(place);
      if (column_ < cells_.size())
        throw BrokenPart("the cells of row " + std::to_string(rows_) + " are out of order");
      if (column_ >= kMostColumns) throw BrokenPart("more columns than a sheet has");
      type_ = attributes.get("t");
      begin_ = text_.size();
      has_value_ = false;
      in_cell_ = true;
    } else if (in_cell_ && (name == "v" || name == "t")) {
      inside_ = !phonetic_;
      has_value_ = true;
    } else if (name == "rPh") {
      phonetic_ = true;
    }
  }

  void end(std::string_view name) override {
    if (name == "v" || name == "t") inside_ = false;
    if (name == "rPh") phonetic_ = false;
    if (name == "c" && in_cell_) end_cell();
    if (name == "row") end_row();
  }

  void text(std::string_view text) override {
    if (!inside_) return;
    if (text_.size() + text.size() > kMostRowText) throw BrokenPart("a row of more than 16 MiB");
    text_ += text;
  }

 private:
  struct Stored {
    Cell::CellKind kind = Cell::CellKind::empty;
    double number = 0;
    std::size_t begin = 0;  // in the row's text, or the number of a shared text
    std::size_t end = 0;
    bool shared = false;
  };

  static std::size_t column_of(std::string_view place) {
    std::size_t column = 0;
    for (const char c : place) {
      if (c < 'A' || c > 'Z') break;
      column = column * 26 + static_cast<std::size_t>(c - 'A') + 1;
      if (column > kMostColumns) break;
    }
    if (column == 0) throw BrokenPart("'" + display(place.substr(0, 40)) + "' is not a cell");
    return column - 1;
  }

  void end_cell() {
    in_cell_ = false;
    // A formula that was not computed has an empty value.
    const bool number = type_.empty() || type_ == "n";
    if (!has_value_ || (number && text_.size() == begin_)) return;
    // A few bytes can name the last column, and all cells before it are filled in.
    blanks_ += column_ - cells_.size();
    if (blanks_ > limits_.blanks) throw BrokenPart("more blank cells than are accepted");
    cells_.resize(column_);
    Stored& cell = cells_.emplace_back();
    const std::string_view text = std::string_view(text_).substr(begin_);
    if (type_ == "s") {
      const std::uint64_t index = whole(text);
      if (index >= shared_.size()) throw BrokenPart("there is no shared text " + std::to_string(index));
      cell = {Cell::CellKind::text, 0, index, 0, true};
      text_.resize(begin_);
    } else if (type_ == "b") {
      cell = {Cell::CellKind::boolean, text == "1" || text == "true" ? 1.0 : 0.0, 0, 0, false};
    } else if (number) {
      const auto value = parse_number(text);
      if (!value || !std::isfinite(*value))
        throw BrokenPart("'" + display(text.substr(0, 40)) + "' is not a number");
      cell = {Cell::CellKind::number, *value, 0, 0, false};
    } else {
      if (text.find("_x") != std::string_view::npos) {
        const std::string plain = unescaped(text);
        text_.resize(begin_);
        text_ += plain;
      }
      cell = {Cell::CellKind::text, 0, begin_, text_.size(), false};
    }
  }

  static std::uint64_t whole(std::string_view text) {
    const auto number = whole_number<std::uint64_t>(text);
    if (!number) throw BrokenPart("'" + display(text.substr(0, 40)) + "' is not the number of a text");
    return *number;
  }

  void end_row() {
    if (cells_.empty()) return;
    row_.clear();
    for (const Stored& cell : cells_) {
      std::string_view text;
      if (cell.kind == Cell::CellKind::text) {
        text = cell.shared ? shared_.at(cell.begin)
                           : std::string_view(text_).substr(cell.begin, cell.end - cell.begin);
      }
      row_.push_back({cell.kind, cell.number, text});
    }
    visit_(row_);
    cells_.clear();
  }

  const SharedTexts& shared_;
  const RowVisitor& visit_;
  const XlsxLimits& limits_;
  std::uint64_t rows_ = 0;
  std::uint64_t blanks_ = 0;
  std::vector<Stored> cells_;
  std::string text_;  // of the row
  std::string type_;
  std::size_t column_ = 0;
  std::size_t begin_ = 0;
  bool in_cell_ = false;
  bool inside_ = false;
  bool phonetic_ = false;
  bool has_value_ = false;
  std::vector<Cell> row_;
};

class Workbook {
 public:
  Workbook(std::shared_ptr<const ByteSource> file, const XlsxLimits& limits)
      : name_(file->name()), limits_(limits), zip_(std::move(file)) {}

  void read(const std::function<void(std::string_view)>& begin, const RowVisitor& visit) const {
    WorkbookHandler workbook;
    workbook.most = limits_.sheets;
    read_part("xl/workbook.xml", workbook);
    read_part("xl/_rels/workbook.xml.rels", workbook);
    SharedTexts shared(limits_);
    if (!workbook.shared.empty()) read_part(path_of(workbook.shared), shared);
    for (const auto& [name, relation] : workbook.sheets) {
      const auto target = workbook.targets.find(relation);
      if (target == workbook.targets.end())
        fail("xl/workbook.xml", "the sheet '" + display(name) + "' has no part in the file");
      begin(name);
      SheetHandler sheet(shared, visit, limits_);
      read_part(path_of(target->second), sheet);
    }
  }

 private:
  /// A target is relative to xl/, or to the root of the archive.
  static std::string path_of(const std::string& target) {
    return target.starts_with('/') ? target.substr(1) : "xl/" + target;
  }

  void read_part(const std::string& path, XmlHandler& handler) const {
    const archive::ZipEntry* entry = zip_.find(path);
    if (entry == nullptr) fail(path, "missing: this is not a workbook");
    try {
      read_xml(zip_, *entry, name_, handler);
    } catch (const BrokenPart& error) {
      fail(path, error.what());
    }
  }

  [[noreturn]] void fail(const std::string& path, const std::string& reason) const {
    throw FormatError(display(name_) + ": " + display(path), reason);
  }

  std::string name_;
  const XlsxLimits& limits_;
  archive::ZipReader zip_;
};

}  // namespace

void read_xlsx(std::shared_ptr<const ByteSource> file, const std::function<void(std::string_view)>& begin,
               const RowVisitor& visit, const XlsxLimits& limits) {
  Workbook(std::move(file), limits).read(begin, visit);
}

}  // namespace msprobe::sheets
