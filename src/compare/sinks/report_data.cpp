// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/report_data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "archive/deflate.hpp"
#include "compare/sinks/report_entries.hpp"
#include "compare/sinks/row_sample.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "dump/construct_json.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "report/page.hpp"
#include "report/row_blocks.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using dump::Item;
using dump::Side;
using verdict::Field;
using verdict::RankResult;
using verdict::Verdict;

constexpr std::size_t kRowsInChunk = 65'536;
constexpr std::uint32_t kWholeName = std::uint32_t{1} << 31;
constexpr std::uint32_t kGoldenItem = std::uint32_t{1} << 31;
constexpr std::uint8_t kOnlyInGolden = 3;  // in the place of a verdict
constexpr std::int64_t kExactInDouble = std::int64_t{1} << 53;

/// Appends the bytes of the values, padded to a multiple of eight.
template <class T>
void append_padded(std::string& out, const std::vector<T>& values) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  out.append((8 - out.size() % 8) % 8, '\0');
}

/// The upper half of a float, rounded: two digits, in two bytes.
std::uint16_t half_of(float value) {
  if (std::isnan(value)) return 0x7FC0;
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000U) >> 16);
}

/// Items of golden without a row, each with the number of the target's entries before it. Items of common
/// entries come after those entries; items of entries that golden alone has come in their places.
std::vector<std::pair<std::uint64_t, std::uint32_t>> items_without_row(const RankResult& result) {
  const Side& golden = result.golden;
  std::vector<bool> used(golden.items.size(), false);
  for (const pairing::Pair& row : result.rows) {
    if (row.has_golden()) used[row.golden] = true;
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> alone;
  const auto add = [&](std::uint32_t number, std::uint32_t after) {
    const std::uint64_t ahead = after == pairing::kNone ? 0 : std::uint64_t{after} + 1;
    const dump::Api& api = golden.apis[number];
    for (const std::uint32_t i : api.items()) {
      if (!used[i]) alone.emplace_back(ahead, i);
    }
  };
  const std::vector<std::uint32_t>& partners = result.alignment->target_of;
  for (std::uint32_t api = 0; api < partners.size(); ++api) {
    if (partners[api] != pairing::kNone) add(api, partners[api]);
  }
  for (const pairing::GoldenOnly& one : result.alignment->golden_only) add(one.golden, one.after);
  std::ranges::stable_sort(alone, [](const auto& a, const auto& b) { return a.first < b.first; });
  return alone;
}

/// The lines of the page with golden's items without a row among them: numbers of rows, or of items with
/// kGoldenItem. Empty if the lines are the rows unchanged.
std::vector<std::uint32_t> lines_of(const RankResult& result) {
  if (!result.diagnosis || !result.alignment) return {};
  const auto alone = items_without_row(result);
  if (alone.empty()) return {};
  std::vector<std::uint32_t> lines;
  auto next = alone.begin();
  const auto put_until = [&](std::uint64_t end) {
    for (; next != alone.end() && next->first < end; ++next) lines.push_back(next->second | kGoldenItem);
  };
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    if (result.rows[i].has_target()) put_until(std::uint64_t{result.target_item(result.rows[i]).api} + 1);
    lines.push_back(static_cast<std::uint32_t>(i));
  }
  put_until(UINT64_MAX);
  return lines;
}

/// The cells of one column of the table.
struct PackedColumn {
  Field field = Field::target_name;
  std::string name;
  std::size_t cell = 0;  // its place in the rows of the table
  std::uint32_t text_count = 0;
  TextTable texts;                   // shared by its cells, which number them from 1; 0 marks a number
  std::vector<int> has_numbers;      // for each chunk
  std::vector<std::uint32_t> codes;  // of the rows of the chunk in the making
  std::vector<double> numbers;
  bool any_number = false;

  /// True if a percent sign follows its numbers.
  bool percent() const { return field == Field::relative; }
};

/// Some rows, made on any thread; texts are numbered within the block.
struct PackedBlock {
  struct ColumnCells {
    std::vector<std::uint32_t> codes;
    std::vector<double> numbers;
    std::vector<std::string> texts;
    std::unordered_map<std::string, std::uint32_t> known;

    void clear() {
      codes.clear();
      numbers.clear();
      texts.clear();
      known.clear();
    }
    void add(double number) {
      codes.push_back(0);
      numbers.push_back(number);
    }
    void add(std::string_view text) {
      numbers.push_back(0);
      // The cell above often has the same text.
      if (!codes.empty() && codes.back() != 0 && texts[codes.back() - 1] == text) {
        codes.push_back(codes.back());
        return;
      }
      const auto [place, inserted] =
          known.try_emplace(std::string(text), static_cast<std::uint32_t>(texts.size() + 1));
      if (inserted) texts.push_back(place->first);
      codes.push_back(place->second);
    }
  };
  report::RowRange rows;
  std::vector<std::uint32_t> targets;  // numbers of APIs, with kWholeName; kNoEntry: none
  std::vector<std::uint32_t> goldens;
  std::vector<ColumnCells> columns;
};

struct CellAdder {
  PackedBlock::ColumnCells& out;
  bool percent;  // its numbers have a unit, except the 0 of equal values

  void operator()(const report::Text& text) const { out.add(text.value); }
  void operator()(const report::Spelled& number) const {
    if (percent && number.kind != report::Spelled::NumberForm::percent) {
      out.add(report::plain_text(number));
    } else {
      (*this)(number.value);
    }
  }
  void operator()(double value) const {
    if (std::isnan(value)) {
      out.add("Nan");
    } else if (std::isinf(value)) {
      out.add(value < 0 ? "-inf" : "inf");
    } else {
      out.add(value);
    }
  }
  void operator()(std::int64_t value) const {
    if (value >= -kExactInDouble && value <= kExactInDouble) {
      out.add(static_cast<double>(value));
    } else {
      out.add(std::to_string(value));
    }
  }
  void operator()(bool value) const { out.add(value ? "True" : "False"); }
};

class RankPacker {
 public:
  explicit RankPacker(const RankRows& rows)
      : rows_(rows), result_(rows.result()), entries_(rows.result()), lines_(lines_of(rows.result())) {
    for (std::size_t i = 0; i < rows.cells().columns().size(); ++i) {
      const verdict::Column& field = rows.cells().columns()[i];
      if (field.field == Field::stack) continue;  // the stacks are beside the entries
      PackedColumn& column = columns_.emplace_back();
      column.field = field.field;
      column.name = field.title;
      column.cell = i;
    }
  }

  PackedRank pack(std::optional<std::size_t> first_bad, std::size_t room,
                  const dump::ConstructTable& construct, const dump::ConstructTable& golden) {
    packed_.first_bad = first_bad;
    if (lines() > room) sample(first_bad, room);
    report::each_block<PackedBlock>(
        {0, lines()}, {}, [&](report::RowRange rows, PackedBlock& block) { return fill(rows, block); },
        [&](const PackedBlock& block) { append(block); });
    if (!verdicts_.empty()) flush();
    entries_.place(construct, golden);
    take_calls();
    packed_.names = report::deflate_all(names());
    return std::move(packed_);
  }

 private:
  /// A row of the page.
  struct PageRow {
    std::size_t row = 0;
    std::uint32_t golden = 0;  // the item, if golden alone has the line
    bool golden_only = false;

    const Item* target(const RankResult& result) const {
      return golden_only ? nullptr : result.find_target(result.rows[row]);
    }
    const Item* partner(const RankResult& result) const {
      return golden_only ? &result.golden.items[golden] : result.find_golden(result.rows[row]);
    }
  };
  std::size_t lines() const { return lines_.empty() ? rows_.rows() : lines_.size(); }
  PageRow line_of(std::size_t index) const {
    if (lines_.empty()) return {.row = index};
    if ((lines_[index] & kGoldenItem) != 0)
      return {.golden = lines_[index] & ~kGoldenItem, .golden_only = true};
    return {.row = lines_[index]};
  }

  /// The entry of a line, from golden if the target has none; the side is null without an entry.
  struct EntryOf {
    const Side* side = nullptr;
    std::uint32_t api = kNoEntry;
    bool operator==(const EntryOf&) const = default;
  };
  EntryOf entry_of(const PageRow& line) const {
    if (const Item* const target = line.target(result_)) return {&result_.target, target->api};
    if (const Item* const golden = line.partner(result_)) return {&result_.golden, golden->api};
    return {};
  }

  Urgency urgency(const PageRow& line, std::optional<std::size_t> first_bad) const {
    if (line.golden_only) return Urgency::error;
    const pairing::Pair& row = result_.rows[line.row];
    const bool introduced = result_.origin(row) == diagnosis::Origin::introduced;
    if (first_bad == line.row) return Urgency::named;
    if (introduced) return Urgency::cause;
    const Verdict verdict = result_.verdict(line.row);
    if (verdict == Verdict::error) return Urgency::error;
    return verdict == Verdict::warning ? Urgency::warning : Urgency::other;
  }

  /// Keeps at most `room` lines, and either all lines of an entry or none, because they are read together.
  void sample(std::optional<std::size_t> first_bad, std::size_t room) {
    std::set<std::string_view> named;  // entries that have findings
    if (result_.diagnosis) {
      for (const diagnosis::Finding& finding : result_.diagnosis->findings) named.insert(finding.entry);
    }
    std::vector<RowGroup> groups;
    EntryOf before;
    for (std::size_t i = 0; i < lines(); ++i) {
      const PageRow line = line_of(i);
      const EntryOf entry = entry_of(line);
      if (groups.empty() || entry != before) {
        groups.emplace_back();
        if (entry.side != nullptr && named.contains(entry.side->text(entry.side->apis[entry.api].name)))
          groups.back().urgency = Urgency::named;
      }
      before = entry;
      ++groups.back().lines;
      groups.back().urgency = std::min(groups.back().urgency, urgency(line, first_bad));
    }
    const std::vector<bool> shown = sample_groups(groups, room);
    packed_.first_bad.reset();
    std::vector<std::uint32_t> kept;
    std::uint64_t rows = 0;  // of the tables
    std::size_t at = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::size_t end = at + groups[i].lines;
      for (; at < end; ++at) {
        if (!shown[i]) continue;
        const PageRow line = line_of(at);
        kept.push_back(line.golden_only ? line.golden | kGoldenItem : static_cast<std::uint32_t>(line.row));
        if (line.golden_only) continue;
        if (line.row == first_bad) packed_.first_bad = rows;
        ++rows;
      }
    }
    packed_.left_out = lines() - kept.size();
    lines_ = std::move(kept);
  }

  float explained(const PageRow& line) const {
    const Item* const item = line.target(result_);
    const bool diagnosed = item != nullptr && result_.is_diagnosed(result_.rows[line.row]);
    return diagnosed ? result_.diagnosis->explained[result_.rows[line.row].target] : NAN;
  }

  std::size_t fill(report::RowRange rows, PackedBlock& block) const {
    std::vector<report::Cell> cells;
    report::Scratch scratch;
    block.rows = rows;
    block.targets.clear();
    block.goldens.clear();
    block.columns.resize(columns_.size());
    for (PackedBlock::ColumnCells& column : block.columns) column.clear();
    for (std::size_t i = rows.first; i < rows.last; ++i) {
      const PageRow line = line_of(i);
      if (line.golden_only) {
        rows_.cells().golden_item(line.golden, cells, scratch);
      } else {
        rows_.row(line.row, cells, scratch);
      }
      for (std::size_t k = 0; k < columns_.size(); ++k) {
        const report::Cell& cell = cells[columns_[k].cell];
        if (columns_[k].field == Field::target_name) {
          add_name(std::get<report::Text>(cell).value, result_.target, line.target(result_), block.columns[k],
                   block.targets);
        } else if (columns_[k].field == Field::golden_name) {
          add_name(std::get<report::Text>(cell).value, result_.golden, line.partner(result_),
                   block.columns[k], block.goldens, is_within_common(line));
        } else {
          std::visit(CellAdder{block.columns[k], columns_[k].percent()}, cell);
        }
      }
    }
    return (rows.last - rows.first) * columns_.size() * sizeof(double);
  }

  /// True for an item that golden alone has in a common entry; its name may differ in the target.
  bool is_within_common(const PageRow& line) const {
    return line.golden_only &&
           result_.alignment->target_of[result_.golden.items[line.golden].api] != pairing::kNone;
  }

  static void add_name(std::string_view text, const Side& side, const Item* item,
                       PackedBlock::ColumnCells& cells, std::vector<std::uint32_t>& apis,
                       bool as_it_is = false) {
    if (item == nullptr) {
      cells.add(text);
      apis.push_back(kNoEntry);
      return;
    }
    const std::string_view entry = side.text(side.apis[item->api].name);
    const bool whole = as_it_is || !text.starts_with(entry);
    cells.add(whole ? text : text.substr(entry.size()));
    apis.push_back(item->api | (whole ? kWholeName : 0));
  }

  void append(const PackedBlock& block) {
    for (std::size_t i = block.rows.first; i < block.rows.last; ++i) {
      const PageRow line = line_of(i);
      verdicts_.push_back(line.golden_only ? kOnlyInGolden
                                           : static_cast<std::uint8_t>(result_.verdict(line.row)));
      if (result_.diagnosis) explained_.push_back(half_of(explained(line)));
    }
    for (const std::uint32_t api : block.targets) targets_.push_back(api);
    for (std::size_t i = 0; i < block.goldens.size(); ++i) {
      const std::uint32_t api = block.goldens[i];
      if (api == kNoEntry) {
        goldens_.push_back(api);
        continue;
      }
      const std::uint32_t golden = api & ~kWholeName;
      const bool within_common = is_within_common(line_of(block.rows.first + i));
      goldens_.push_back((within_common ? entries_.of_partner(golden) : entries_.of_golden(golden)) |
                         (api & kWholeName));
    }
    std::vector<std::uint32_t> numbers;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      PackedColumn& column = columns_[k];
      const PackedBlock::ColumnCells& cells = block.columns[k];
      numbers.assign(1, 0);
      for (const std::string& text : cells.texts) {
        numbers.push_back(column.texts.intern(text) + 1);
        column.text_count = std::max(column.text_count, numbers.back());
      }
      for (const std::uint32_t code : cells.codes) {
        column.codes.push_back(numbers[code]);
        column.any_number = column.any_number || code == 0;
      }
      column.numbers.insert(column.numbers.end(), cells.numbers.begin(), cells.numbers.end());
    }
    if (verdicts_.size() >= kRowsInChunk) flush();
  }

  /// Deflates the rows that were gathered so far, one array per thread.
  void flush() {
    const std::size_t ahead = result_.diagnosis ? 4 : 3;
    std::vector<std::string> arrays(ahead + columns_.size());
    std::vector<archive::DeflatedBlock> deflated(arrays.size());
    parallel_for(arrays.size(), [&](std::size_t i) {
      if (i == 0) append_padded(arrays[i], verdicts_);
      if (i == 1) append_padded(arrays[i], targets_);
      if (i == 2) append_padded(arrays[i], goldens_);
      if (i == 3 && ahead == 4) append_padded(arrays[i], explained_);
      if (i >= ahead) {
        const PackedColumn& column = columns_[i - ahead];
        append_padded(arrays[i], column.codes);
        if (column.any_number) append_padded(arrays[i], column.numbers);
      }
      archive::deflate_block(arrays[i], deflated[i]);
    });
    PackedRank::Chunk& chunk = packed_.chunks.emplace_back();
    chunk.rows = verdicts_.size();
    for (const archive::DeflatedBlock& block : deflated) chunk.columns += block.bytes;
    chunk.columns += archive::kLastDeflateBlock;
    verdicts_.clear();
    targets_.clear();
    goldens_.clear();
    explained_.clear();
    for (PackedColumn& column : columns_) {
      column.codes.clear();
      column.numbers.clear();
      column.has_numbers.push_back(column.any_number ? 1 : 0);
      column.any_number = false;
    }
  }

  /// Takes the communication, which is matched when all ranks are known.
  void take_calls() {
    packed_.number = result_.number;
    if (result_.target.calls.empty()) return;
    for (const dump::Api& api : result_.target.apis) {
      const std::string_view text = result_.target.text(api.name);
      const auto call = result_.target.calls.find(text);
      const auto name = dump::parse_entry_name(text);
      if (call == result_.target.calls.end() || !name) continue;
      packed_.calls.push_back(
          {std::string(name->operation()), name->direction == dump::Direction::backward, call->second});
      packed_.call_entries.push_back(entries_.find(text));
    }
  }

  std::string names() const {
    JsonWriter json({.compact = true, .text = JsonText::utf8});
    json.open_object();
    entries_.add_to(json);
    json.member("explained", result_.diagnosis != nullptr);
    json.open_list("columns");
    for (const PackedColumn& column : columns_) {
      json.open_object();
      json.member("name", column.name);
      if (column.percent()) json.member("unit", "%");
      json.member("numbers", column.has_numbers);
      json.open_list("texts");
      for (std::uint32_t i = 0; i < column.text_count; ++i) json.value(column.texts.at(i));
      json.close();
      json.close();
    }
    json.close();
    json.close();
    return json.take();
  }

  const RankRows& rows_;
  const RankResult& result_;
  ReportEntries entries_;
  std::vector<std::uint32_t> lines_;
  std::vector<PackedColumn> columns_;
  PackedRank packed_;
  std::vector<std::uint8_t> verdicts_;  // of the current chunk, like the following
  std::vector<std::uint32_t> targets_;
  std::vector<std::uint32_t> goldens_;
  std::vector<std::uint16_t> explained_;
};

}  // namespace

PackedRank pack_rank(const RankRows& rows, std::optional<std::size_t> first_bad, std::size_t room) {
  static const dump::ConstructTable kNone;
  const dump::ConstructBeside* construct = rows.result().target_construct.get();
  const dump::ConstructBeside* golden = rows.result().golden_construct.get();
  return RankPacker(rows).pack(first_bad, room, construct == nullptr ? kNone : construct->table(),
                               golden == nullptr ? kNone : golden->table());
}

}  // namespace msprobe::compare
