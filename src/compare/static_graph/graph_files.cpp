// SPDX-License-Identifier: Apache-2.0
#include "compare/static_graph/graph_files.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "dump/names.hpp"
#include "sheets/csv_rows.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using dump::kStatistics;
using measuring::Mode;
using sheets::CsvRows;

constexpr std::size_t kMostNameParts = 64;  // of a name
constexpr std::size_t kLeastColumns = 13;
// Columns with a fixed place; the others are found by the header.
constexpr std::size_t kOpName = 1;
constexpr std::size_t kTaskId = 2;
constexpr std::size_t kTime = 4;
constexpr std::size_t kIo = 5;
constexpr std::size_t kSlot = 6;

constexpr std::array<std::string_view, kStatistics> kValueColumns = {"Max Value", "Min Value", "Avg Value",
                                                                     "L2Norm Value"};

std::string without_zeros(std::string_view digits) {
  const std::size_t first = digits.find_first_not_of('0');
  return std::string(first == std::string_view::npos ? digits.substr(digits.size() - 1)
                                                     : digits.substr(first));
}

[[noreturn]] void fail(const ByteSource& file, const CsvRows& rows, const std::string& reason) {
  throw FormatError(display(file.name()), "line " + std::to_string(rows.line()) + ": " + reason);
}

std::optional<double> statistic(std::string_view text) {
  if (text == "null" || text == "False") return 0.0;
  if (text == "True") return 1.0;
  return parse_number(text);
}

void check_room(const StaticGraphSide& side, const std::string& file) {
  if (side.items.size() >= kMaxGraphItems) throw FormatError(display(file), "more than 5,000,000 tensors");
}

/// The folder has hashes in place of long names; mapping.csv has the names.
std::map<std::string, std::string, std::less<>> read_mapping(const std::string& path) {
  std::map<std::string, std::string, std::less<>> names;
  if (!path_exists(path)) return names;
  const auto file = open_file(path);
  CsvRows rows(*file);
  std::vector<std::string> fields;
  for (bool header = true; rows.next(fields); header = false) {
    if (header) continue;
    if (fields.size() < 2) fail(*file, rows, "two columns expected");
    if (names.size() >= kMaxGraphItems) fail(*file, rows, "more than 5,000,000 names");
    names.insert_or_assign(fields[0], fields[1]);
  }
  return names;
}

void add_tensors(const std::string& folder, const std::vector<std::string>& names, StaticGraphSide& side) {
  const auto mapping = read_mapping(folder + "/mapping.csv");
  for (const std::string& name : names) {
    if (!name.ends_with(".npy")) continue;
    check_room(side, folder);
    const auto mapped = mapping.find(name);
    GraphItem item;
    if (!read_graph_name(mapped == mapping.end() ? name : mapped->second, item)) {
      ++side.unnamed;
      continue;
    }
    item.file = folder + "/" + name;
    side.items.push_back(std::move(item));
  }
}

}  // namespace

bool read_graph_name(std::string_view name, GraphItem& item) {
  const std::vector<std::string_view> parts = split(name, ".");
  if (std::ranges::find(parts, "") != parts.end()) return false;
  constexpr std::size_t kTimeAt = 4;
  if (parts.size() < kTimeAt + 5 || parts.size() > kMostNameParts || parts.back() != "npy") return false;
  const std::size_t slot = parts.size() - 3;
  std::size_t io = kTimeAt;
  while (io < slot && dump::is_digits(parts[io])) ++io;
  if (io == kTimeAt || io >= slot || (parts[io] != "input" && parts[io] != "output")) return false;
  std::string way(parts[io]);
  for (std::size_t i = io + 1; i < slot; ++i) {
    if (!dump::is_digits(parts[i])) return false;
    way += "." + std::string(parts[i]);
  }
  item.key = std::string(parts[1]) + "." + std::string(parts[2]) + "." + way + "." + std::string(parts[slot]);
  item.time = without_zeros(parts[kTimeAt]);
  return true;
}

void read_statistic_csv(const ByteSource& file, StaticGraphSide& side) {
  CsvRows rows(file);
  std::vector<std::string> fields;
  if (!rows.next(fields)) throw FormatError(display(file.name()), "an empty file");
  const auto column = [&](std::string_view name) -> std::optional<std::size_t> {
    // If a name occurs twice, the last column counts.
    const auto found = std::find(fields.rbegin(), fields.rend(), name);
    if (found != fields.rend()) return static_cast<std::size_t>(fields.rend() - found) - 1;
    side.gaps.push_back(display(file.name()) + " has no column " + std::string(name));
    return std::nullopt;
  };
  const auto dtype = column("Data Type");
  const auto shape = column("Shape");
  std::array<std::optional<std::size_t>, kStatistics> values;
  for (std::size_t i = 0; i < kStatistics; ++i) values[i] = column(kValueColumns[i]);

  while (rows.next(fields)) {
    if (fields.size() < kLeastColumns) fail(file, rows, "fewer than 13 columns");
    check_room(side, file.name());
    const auto field = [&](std::size_t index) -> const std::string& {
      if (index >= fields.size()) fail(file, rows, "fewer columns than the header");
      return fields[index];
    };
    GraphItem& item = side.items.emplace_back();
    const std::string_view time = trimmed(fields[kTime]);
    if (!dump::is_digits(time)) fail(file, rows, "the time '" + display(fields[kTime]) + "' is not a number");
    item.time = without_zeros(time);
    item.key = valid_utf8(fields[kOpName] + "." + fields[kTaskId] + "." + fields[kIo] + "." + fields[kSlot]);
    item.file = file.name();
    if (dtype) item.dtype = valid_utf8(field(*dtype));
    if (shape) item.shape = valid_utf8(field(*shape));
    for (std::size_t i = 0; i < kStatistics; ++i) {
      item.statistics[i] = std::numeric_limits<double>::quiet_NaN();
      if (!values[i]) continue;
      const std::string& text = field(*values[i]);
      const auto number = statistic(text);
      if (!number && !text.empty()) {
        fail(file, rows, std::string(kValueColumns[i]) + " '" + display(text) + "' is not a number");
      }
      if (number) item.statistics[i] = *number;
    }
  }
}

StaticGraphSide read_graph_side(const std::vector<std::string>& folders) {
  StaticGraphSide side;
  side.mode = Mode::statistics;
  std::vector<std::vector<std::string>> names;
  for (const std::string& folder : folders) {
    names.push_back(names_in(folder, WhichNames::regular_files));
    for (const std::string& name : names.back()) {
      if (name.ends_with(".npy")) side.mode = Mode::tensor;
    }
  }
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (side.mode == Mode::tensor) {
      add_tensors(folders[i], names[i], side);
    } else {
      read_statistic_csv(*open_file(folders[i] + "/statistic.csv"), side);
    }
  }
  return side;
}

}  // namespace msprobe::compare
