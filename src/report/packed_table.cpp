// SPDX-License-Identifier: Apache-2.0
#include "report/packed_table.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/text_pool.hpp"

namespace msprobe::report {
namespace {

/// A cell: which of the types it has, and what that takes; texts and lists by number.
struct PackedCell {
  std::uint8_t type = 0;
  std::uint8_t kind = 0;  // of a spelled number
  std::uint32_t text = 0;
  std::uint32_t json = 0;
  std::uint32_t list = 0;  // 0: none
  double real = 0;
  std::int64_t integer = 0;
};

struct PackedRows {
  std::vector<std::string> columns;
  std::optional<std::vector<std::string>> objects;
  std::vector<Severity> severities;  // by row
  std::string cells;                 // one row after the other, each cell with what its type has
  std::vector<std::uint64_t> begins;
  std::vector<std::string> texts;
  std::vector<std::vector<std::string>> lists;
};

void carry(auto& packet, Carried<PackedRows> auto& rows) {
  packet(rows.columns, rows.objects, rows.severities, rows.cells, rows.begins, rows.texts, rows.lists);
}

enum CellType : std::uint8_t { kText, kStructured, kSpelled, kReal, kInteger, kBoolean };

void carry(auto& packet, Carried<PackedCell> auto& cell) {
  packet(cell.type);
  switch (cell.type) {
    case kText:
      return packet(cell.text);
    case kStructured:
      return packet(cell.text, cell.json, cell.list);
    case kSpelled:
      return packet(cell.kind, cell.real, cell.integer);
    case kReal:
      return packet(cell.real);
    default:
      return packet(cell.integer);
  }
}

class Packer {
 public:
  explicit Packer(const Table& table) : table_(table) {}

  PackedRows run() {
    rows_.columns = table_.columns();
    rows_.objects = table_.objects();
    PacketWriter cells;
    std::vector<Cell> row;
    Scratch scratch;
    for (std::size_t i = 0; i < table_.rows(); ++i) {
      rows_.severities.push_back(table_.severity(i));
      rows_.begins.push_back(cells.bytes().size());
      table_.row(i, row, scratch);
      for (const Cell& cell : row) cells(packed(cell));
    }
    rows_.cells = cells.take();
    for (std::uint32_t i = 0; i < texts_.size(); ++i) rows_.texts.emplace_back(texts_.at(i));
    return std::move(rows_);
  }

 private:
  PackedCell packed(const Cell& cell) {
    PackedCell out;
    out.type = static_cast<std::uint8_t>(cell.index());
    if (const auto* text = std::get_if<Text>(&cell)) {
      out.text = texts_.intern(text->value);
    } else if (const auto* structured = std::get_if<Structured>(&cell)) {
      out.text = texts_.intern(structured->value);
      out.json = texts_.intern(structured->json);
      if (structured->texts != nullptr) out.list = list(structured->texts);
    } else if (const auto* number = std::get_if<Spelled>(&cell)) {
      out.kind = static_cast<std::uint8_t>(number->kind);
      out.real = number->value;
      out.integer = number->integer;
    } else if (const auto* real = std::get_if<double>(&cell)) {
      out.real = *real;
    } else if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
      out.integer = *integer;
    } else {
      out.integer = std::get<bool>(cell) ? 1 : 0;
    }
    return out;
  }

  /// Counted from 1. Many rows point at one list.
  std::uint32_t list(const std::vector<std::string>* texts) {
    const auto [place, is_new] = lists_.try_emplace(texts, static_cast<std::uint32_t>(lists_.size() + 1));
    if (is_new) rows_.lists.push_back(*texts);
    return place->second;
  }

  const Table& table_;
  PackedRows rows_;
  TextTable texts_;
  std::map<const std::vector<std::string>*, std::uint32_t> lists_;
};

class UnpackedTable final : public Table {
 public:
  explicit UnpackedTable(PackedRows rows) : rows_(std::move(rows)) {}

  const std::vector<std::string>& columns() const override { return rows_.columns; }
  std::size_t rows() const override { return rows_.begins.size(); }
  Severity severity(std::size_t index) const override { return rows_.severities[index]; }
  std::optional<std::vector<std::string>> objects() const override { return rows_.objects; }
  void row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const override {
    cells.clear();
    scratch.clear();
    PacketReader packet(std::string_view(rows_.cells).substr(rows_.begins[index]));
    for (std::size_t i = 0; i < rows_.columns.size(); ++i) {
      PackedCell cell;
      packet(cell);
      cells.push_back(unpacked(cell));
    }
  }

 private:
  Cell unpacked(const PackedCell& cell) const {
    switch (cell.type) {
      case kText:
        return Text{rows_.texts[cell.text]};
      case kStructured:
        return Structured{rows_.texts[cell.text], rows_.texts[cell.json],
                          cell.list == 0 ? nullptr : &rows_.lists[cell.list - 1]};
      case kSpelled:
        return Spelled{static_cast<Spelled::Kind>(cell.kind), cell.real, cell.integer};
      case kReal:
        return cell.real;
      case kInteger:
        return cell.integer;
      default:
        return cell.integer != 0;
    }
  }

  PackedRows rows_;
};

}  // namespace

void pack_table(const Table* table, PacketWriter& packet) {
  packet(table != nullptr);
  if (table != nullptr) packet(Packer(*table).run());
}

std::shared_ptr<const Table> unpack_table(PacketReader& packet) {
  bool there = false;
  packet(there);
  if (!there) return nullptr;
  PackedRows rows;
  packet(rows);
  return std::make_shared<UnpackedTable>(std::move(rows));
}

}  // namespace msprobe::report
