// SPDX-License-Identifier: Apache-2.0
#include "report/packed_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "report/row_blocks.hpp"
#include "support/error.hpp"
#include "support/packet.hpp"
#include "support/text_pool.hpp"

namespace msprobe::report {
namespace {

/// A cell: its type and value; texts and lists by their numbers.
struct PackedCell {
  std::uint8_t type = 0;
  std::uint8_t kind = 0;  // for a Spelled number
  std::uint32_t text = 0;
  std::uint32_t json = 0;
  std::uint32_t list = 0;  // 0: no list
  double real = 0;
  std::int64_t integer = 0;
};

struct PackedRows {
  std::vector<std::string> columns;
  std::optional<std::vector<std::string>> objects;
  std::vector<Severity> severities;  // by row
  std::string cells;                 // row by row, each cell with the bytes of its type
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

class TablePacker {
 public:
  explicit TablePacker(const Table& table) : table_(table) {}

  PackedRows run(RowRange part) {
    rows_.columns = table_.columns();
    rows_.objects = table_.objects();
    PacketWriter cells;
    std::vector<Cell> row;
    Scratch scratch;
    for (std::size_t i = part.first; i < part.last; ++i) {
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

  /// The number of a list, counted from 1. Many rows refer to the same list.
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
    const std::string_view all = rows_.cells;
    PacketReader packet(all.substr(std::min<std::uint64_t>(rows_.begins[index], all.size())));
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
        return Text{known(rows_.texts, cell.text)};
      case kStructured:
        return Structured{known(rows_.texts, cell.text), known(rows_.texts, cell.json),
                          cell.list == 0 ? nullptr : &known(rows_.lists, cell.list - 1)};
      case kSpelled:
        return Spelled{static_cast<Spelled::NumberForm>(cell.kind), cell.real, cell.integer};
      case kReal:
        return cell.real;
      case kInteger:
        return cell.integer;
      default:
        return cell.integer != 0;
    }
  }

  /// The text or list to which a cell refers by number.
  template <typename T>
  static const T& known(const std::vector<T>& all, std::uint32_t number) {
    if (number >= all.size()) refuse_packet();
    return all[number];
  }

  PackedRows rows_;
};

std::string pack_rows(const Table& table, RowRange part) {
  PacketWriter packet;
  packet(TablePacker(table).run(part));
  return packet.take();
}

}  // namespace

std::string pack_table(const Table& table) {
  return pack_rows(table, {0, table.rows()});
}

std::shared_ptr<const Table> unpack_table(std::string_view bytes) {
  PackedRows rows;
  PacketReader packet(bytes);
  packet(rows);
  if (rows.severities.size() != rows.begins.size()) refuse_packet();
  return std::make_shared<UnpackedTable>(std::move(rows));
}

class TableStore::Stored final : public Table {
 public:
  Stored(TableStore& store, const Table& table)
      : store_(store), columns_(table.columns()), objects_(table.objects()) {
    for (std::size_t first = 0; first < table.rows(); first += kRowsInPiece) {
      const RowRange part = {first, std::min(table.rows(), first + kRowsInPiece)};
      pieces_.push_back(store_.file_.add(pack_rows(table, part)));
      for (std::size_t i = part.first; i < part.last; ++i) severities_.push_back(table.severity(i));
    }
    loaded_.resize(pieces_.size());
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return severities_.size(); }
  Severity severity(std::size_t index) const override { return severities_[index]; }
  std::optional<std::vector<std::string>> objects() const override { return objects_; }
  /// `scratch` keeps the loaded rows alive, since views in `cells` refer to them.
  void row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const override {
    const std::shared_ptr<const Table> rows = load(index / kRowsInPiece);
    rows->row(index % kRowsInPiece, cells, scratch);
    scratch.keep(rows);
  }

 private:
  static constexpr std::size_t kRowsInPiece = 4096;

  std::shared_ptr<const Table> load(std::size_t piece) const {
    const std::lock_guard lock(loading_);
    std::shared_ptr<const Table> rows = loaded_[piece].lock();
    if (rows != nullptr) return rows;
    rows = unpack_table(store_.file_.read(pieces_[piece]));
    loaded_[piece] = rows;
    store_.used(rows);
    return rows;
  }

  TableStore& store_;
  std::vector<std::string> columns_;
  std::optional<std::vector<std::string>> objects_;
  std::vector<Severity> severities_;  // by row
  std::vector<SpillFile::Piece> pieces_;
  mutable std::mutex loading_;
  mutable std::vector<std::weak_ptr<const Table>> loaded_;
};

std::shared_ptr<const Table> TableStore::add(const Table& table) {
  return std::make_shared<Stored>(*this, table);
}

void TableStore::used(std::shared_ptr<const Table> loaded) {
  constexpr std::size_t kMost = 4;  // recent pieces stay loaded: readers cross from one to the next
  const std::lock_guard lock(mutex_);
  recent_.push_back(std::move(loaded));
  if (recent_.size() > kMost) recent_.pop_front();
}

}  // namespace msprobe::report
