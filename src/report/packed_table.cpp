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

struct PackedRows {
  std::vector<std::string> columns;
  std::optional<std::vector<std::string>> objects;
  std::vector<Severity> severities;  // by row
  std::string cells;                 // row by row, each its type and its value; texts and lists by number
  std::vector<std::uint64_t> begins;
  std::vector<std::string> texts;
  std::vector<std::vector<std::string>> lists;
};

void carry(auto& packet, Carried<PackedRows> auto& rows) {
  packet(rows.columns, rows.objects, rows.severities, rows.cells, rows.begins, rows.texts, rows.lists);
}

enum CellType : std::uint8_t { kText, kStructured, kSpelled, kReal, kInteger, kBoolean };

class TablePacker {
 public:
  explicit TablePacker(const Table& table) : table_(table) {}

  PackedRows run(RowRange part) {
    rows_.columns = table_.columns();
    rows_.objects = table_.objects();
    std::vector<Cell> row;
    Scratch scratch;
    for (std::size_t i = part.first; i < part.last; ++i) {
      rows_.severities.push_back(table_.severity(i));
      rows_.begins.push_back(cells_.bytes().size());
      table_.row(i, row, scratch);
      for (const Cell& cell : row) pack(cell);
    }
    rows_.cells = cells_.take();
    for (std::uint32_t i = 0; i < texts_.size(); ++i) rows_.texts.emplace_back(texts_.at(i));
    return std::move(rows_);
  }

 private:
  void pack(const Cell& cell) {
    if (const auto* text = std::get_if<Text>(&cell)) {
      const bool plain = text->json.empty() && text->texts == nullptr;
      cells_(plain ? kText : kStructured, texts_.intern(text->value));
      if (!plain) cells_(texts_.intern(text->json), list(text->texts));
    } else if (const auto* number = std::get_if<Spelled>(&cell)) {
      cells_(kSpelled, number->kind, number->value, number->integer);
    } else if (const auto* real = std::get_if<double>(&cell)) {
      cells_(kReal, *real);
    } else if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
      cells_(kInteger, *integer);
    } else {
      cells_(kBoolean, std::get<bool>(cell));
    }
  }

  /// The number of a list, counted from 1; 0 without a list. Many rows refer to the same list.
  std::uint32_t list(const std::vector<std::string>* texts) {
    if (texts == nullptr) return 0;
    const auto [place, is_new] = lists_.try_emplace(texts, static_cast<std::uint32_t>(lists_.size() + 1));
    if (is_new) rows_.lists.push_back(*texts);
    return place->second;
  }

  const Table& table_;
  PackedRows rows_;
  PacketWriter cells_;
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
    for (std::size_t i = 0; i < rows_.columns.size(); ++i) cells.push_back(next(packet));
  }

 private:
  Cell next(PacketReader& packet) const {
    CellType type = kText;
    std::uint32_t text = 0;
    std::uint32_t json = 0;
    std::uint32_t list = 0;
    Spelled number;
    bool flag = false;
    packet(type);
    switch (type) {
      case kText:
        packet(text);
        return Text{known(rows_.texts, text)};
      case kStructured:
        packet(text, json, list);
        return Text{known(rows_.texts, text), known(rows_.texts, json),
                    list == 0 ? nullptr : &known(rows_.lists, list - 1)};
      case kSpelled:
        packet(number.kind, number.value, number.integer);
        return number;
      case kReal:
        packet(number.value);
        return number.value;
      case kInteger:
        packet(number.integer);
        return number.integer;
      default:
        packet(flag);
        return flag;
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
