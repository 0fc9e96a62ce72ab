// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/row_text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "series/event_file.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::collector::monitor {

using series::MonitorStatistic;

namespace {

using Rows = std::vector<const SeriesRow*>;

/// How the numbers of a column are spelt: numbers that are written together have one type, as in a data
/// frame.
enum class ColumnType : std::uint8_t { whole, real, mixed };

/// Rounds to decimals as NumPy does: times 10^digits, to the nearest even whole number, and back. A number
/// that would overflow on the way is returned unchanged.
double round_decimals(double value, int digits) {
  // These powers are exact up to 10^22.
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                                       1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};
  const double power = kPowers[digits];
  const double scaled = value * power;
  return std::isfinite(scaled) ? std::nearbyint(scaled) / power : value;
}

void append_cell(std::string& out, const ObservedCell& cell, ColumnType type, int digits) {
  switch (cell.kind) {
    case ObservedCell::ObservedType::absent:
      out += "nan";
      return;
    case ObservedCell::ObservedType::text:
      append_csv_field(out, cell.text);
      return;
    case ObservedCell::ObservedType::boolean:
      out += cell.integer != 0 ? "True" : "False";
      return;
    case ObservedCell::ObservedType::integer:
      if (type == ColumnType::real) break;
      append_json_integer(out, cell.integer);
      return;
    case ObservedCell::ObservedType::natural:
      if (type == ColumnType::real) break;
      append_json_integer(out, static_cast<std::uint64_t>(cell.integer));
      return;
    case ObservedCell::ObservedType::real:
      break;
  }
  append_python_repr(out, round_decimals(cell.real, digits));
}

/// Rows that the Python tool puts into one data frame.
class DataFrame {
 public:
  DataFrame(const Rows& rows, const Batch& batch) {
    for (const SeriesRow* row : rows) cells_.push_back(cells_of(*row, batch.settings->statistics));
    const std::size_t width = cells_.empty() ? 0 : cells_.front().size();
    for (std::size_t column = 0; column < width; ++column) types_.push_back(type_of(column));
  }

  void append_cells(std::string& out, std::size_t row, int digits) const {
    for (std::size_t column = 0; column < types_.size(); ++column) {
      out += ',';
      append_cell(out, cells_[row][column], types_[column], digits);
    }
  }

 private:
  ColumnType type_of(std::size_t column) const {
    bool real = false;
    bool boolean = false;
    for (const std::vector<ObservedCell>& row : cells_) {
      const ObservedCell::ObservedType kind = row[column].kind;
      real = real || kind == ObservedCell::ObservedType::real || kind == ObservedCell::ObservedType::absent;
      boolean = boolean || kind == ObservedCell::ObservedType::boolean;
    }
    if (boolean) return ColumnType::mixed;
    return real ? ColumnType::real : ColumnType::whole;
  }

  std::vector<std::vector<ObservedCell>> cells_;
  std::vector<ColumnType> types_;
};

/// Gives "0:layers.0.fc" for "layers.0.fc.input_1".
std::string module_of(const SeriesInfo& info) {
  const std::size_t dot = info.name.rfind('.');
  return std::to_string(info.stage) + ':' + info.name.substr(0, dot == std::string::npos ? 0 : dot);
}

/// Groups rows by module, in the order in which the modules first occurred.
std::vector<Rows> by_module(const Rows& rows) {
  std::vector<Rows> groups;
  std::unordered_map<std::string, std::size_t> place;
  for (const SeriesRow* row : rows) {
    const auto [found, is_new] = place.try_emplace(module_of(*row->series), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(row);
  }
  return groups;
}

/// Groups rows by `key`, in the order in which the keys first occurred.
template <typename Key, typename KeyOf>
std::vector<std::pair<Key, Rows>> grouped(const std::vector<SeriesRow>& rows, KeyOf key_of) {
  std::vector<std::pair<Key, Rows>> groups;
  for (const SeriesRow& row : rows) {
    const Key key = key_of(*row.series);
    auto found = std::ranges::find_if(groups, [&](const auto& one) { return one.first == key; });
    if (found == groups.end()) found = groups.insert(groups.end(), {key, {}});
    found->second.push_back(&row);
  }
  return groups;
}

std::string column_names(const SeriesInfo& info, const std::vector<MonitorStatistic>& statistics) {
  std::string names;
  const std::size_t own = own_columns(info).size();
  for (std::size_t column = 0; column < (own > 0 ? own : statistics.size()); ++column) {
    names += ',';
    names += column_name(info, statistics, column);
  }
  return names;
}

StepText v1_block(std::string_view file, const Rows& rows, const Batch& batch) {
  const Settings& settings = *batch.settings;
  const SeriesInfo& first = *rows.front()->series;
  const bool micro_steps = first.quantity->has_micro_step ||
                           (settings.each_micro_batch && first.quantity->name == "grad_unreduced");
  StepText block;
  block.prefix = file;
  block.header = std::string("vpp_stage,name,step") + (micro_steps ? ",micro_step" : "") +
                 column_names(first, batch.settings->statistics) + "\n";
  const auto add_frame = [&](const Rows& together) {
    const DataFrame frame(together, batch);
    for (std::size_t i = 0; i < together.size(); ++i) {
      const SeriesInfo& info = *together[i]->series;
      if (!info.is_call) append_json_integer(block.rows, info.stage);
      block.rows += ',';
      append_csv_field(block.rows, info.name);
      block.rows += ',';
      append_json_integer(block.rows, batch.step);
      if (micro_steps) {
        block.rows += ',';
        append_json_integer(block.rows, std::max(info.micro_step, 0));
      }
      frame.append_cells(block.rows, i, settings.digits);
      block.rows += '\n';
    }
  };
  if (!first.quantity->by_module) {
    add_frame(rows);
  } else {
    for (const Rows& together : by_module(rows)) add_frame(together);
  }
  return block;
}

StepText v2_block(const MonitorPart& part, const Rows& rows, std::uint64_t step) {
  const bool micro_steps = rows.front()->series->micro_step >= 0;
  StepText block;
  block.prefix = part.name + "_step";
  block.header = std::string("vpp_stage,step,module_name,scope") + (micro_steps ? ",micro_step" : "") +
                 column_names(*rows.front()->series, part.statistics) + "\r\n";
  std::string& out = block.rows;
  for (const SeriesRow* row : rows) {
    const SeriesInfo& info = *row->series;
    if (!info.is_call) append_json_integer(out, info.stage);
    out += ',';
    append_json_integer(out, step);
    out += ',';
    append_csv_field(out, info.name);
    out += ',';
    append_csv_field(out, info.scope);
    if (micro_steps) {
      out += ',';
      append_json_integer(out, info.micro_step);
    }
    for (const ObservedCell& cell : cells_of(*row, part.statistics)) {
      out += ',';
      append_python_repr(out, cell.is_number() ? cell.real : std::numeric_limits<double>::quiet_NaN());
    }
    out += "\r\n";
  }
  return block;
}

}  // namespace

std::span<const std::string_view> own_columns(const SeriesInfo& info) {
  return info.quantity == nullptr ? std::span<const std::string_view>() : info.quantity->columns;
}

std::string_view column_name(const SeriesInfo& info, const std::vector<MonitorStatistic>& statistics,
                             std::size_t column) {
  return own_columns(info).empty() ? name_of(statistics[column]) : own_columns(info)[column];
}

std::vector<ObservedCell> cells_of(const SeriesRow& row, const std::vector<MonitorStatistic>& statistics) {
  const std::size_t own = own_columns(*row.series).size();
  std::vector<ObservedCell> cells(own > 0 ? own : statistics.size());
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (own == 0) {
      cells[column] = row.held.cell(statistics[column]);
    } else if (row.held.held == Observation::HeldValue::values && column < row.held.values.size()) {
      cells[column].kind = ObservedCell::ObservedType::real;
      cells[column].real = row.held.values[column];
    }
  }
  return cells;
}

std::vector<StepText> csv_blocks(const Batch& batch) {
  const Settings& settings = *batch.settings;
  std::vector<StepText> blocks;
  if (settings.layout == 2) {
    for (const auto& [part, rows] :
         grouped<std::size_t>(batch.rows, [](const SeriesInfo& info) { return info.part; })) {
      blocks.push_back(v2_block(settings.parts[part], rows, batch.step));
    }
    return blocks;
  }
  for (const auto& [file, rows] :
       grouped<std::string_view>(batch.rows, [](const SeriesInfo& info) { return info.quantity->file; })) {
    blocks.push_back(v1_block(file, rows, batch));
  }
  return blocks;
}

std::string event_records(const Batch& batch) {
  std::vector<series::Scalar> scalars;
  for (const SeriesRow& row : batch.rows) {
    const std::vector<ObservedCell> cells = cells_of(row, batch.settings->statistics);
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (!cells[column].is_number()) continue;
      scalars.push_back({row.series->event_tag, column_name(*row.series, batch.settings->statistics, column),
                         series::event_value(cells[column].real)});
    }
  }
  std::string records;
  if (!scalars.empty())
    series::append_event(records, batch.wall_time, static_cast<std::int64_t>(batch.step), scalars);
  return records;
}

std::string quoted_value(const ObservedCell& cell) {
  if (cell.kind == ObservedCell::ObservedType::real) return python_repr(cell.real);
  std::string text;
  append_cell(text, cell, ColumnType::mixed, 0);
  return text;
}

}  // namespace msprobe::collector::monitor
