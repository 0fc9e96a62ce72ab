// SPDX-License-Identifier: Apache-2.0
#include "merge_result/rank_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "sheets/csv_rows.hpp"
#include "sheets/xlsx_reader.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::merge_result {
namespace {

using Kind = sheets::Cell::CellKind;
using Value = RankValues::RankValue;

constexpr std::string_view kTensorMetrics[] = {"Cosine",
                                               "EucDist",
                                               "MaxAbsErr",
                                               "MaxRelativeErr",
                                               "One Thousandth Err Ratio",
                                               "Five Thousandths Err Ratio"};
constexpr std::string_view kStatisticMetrics[] = {"Max diff",        "Min diff",       "Mean diff",
                                                  "L2norm diff",     "MaxRelativeErr", "MinRelativeErr",
                                                  "MeanRelativeErr", "NormRelativeErr"};
constexpr std::string_view kConsistent = "Requires_grad Consistent";
constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

bool is_whole(double number) {
  return number == std::floor(number) && std::fabs(number) < kExactIntegers;
}

/// Older results end some texts with a tab, and csv has a blank before infinite numbers.
std::string_view plain(std::string_view text) {
  if (text.ends_with('\t')) text.remove_suffix(1);
  if (text == " inf" || text == " -inf") text.remove_prefix(1);
  return text;
}

/// A number, or a text that Python reads as a number.
std::optional<double> number_of(Kind kind, double number, std::string_view text) {
  if (kind == Kind::number) return number;
  if (kind != Kind::text) return std::nullopt;
  const std::optional<double> parsed = parse_number(text);
  return parsed && !std::isnan(*parsed) ? parsed : std::nullopt;
}

/// Adds columns of a user's own algorithms, which the Python tool puts between its metrics and the
/// statistics.
void add_own_columns(const std::vector<std::string>& header, std::vector<std::string>& metrics) {
  const auto begin = std::find(header.begin(), header.end(), kTensorMetrics[std::size(kTensorMetrics) - 1]);
  const auto end = std::find(begin, header.end(), "NPU max");
  if (end == header.end()) return;
  for (auto name = begin + 1; name != end; ++name) {
    if (!name->empty() && std::find(metrics.begin(), metrics.end(), *name) == metrics.end())
      metrics.push_back(*name);
  }
}

/// The metrics of a result, by its header; none for checksums and for a file that is no result.
std::vector<std::string> metrics_of(const std::vector<std::string>& header) {
  const auto has = [&](std::string_view name) {
    return std::find(header.begin(), header.end(), name) != header.end();
  };
  const auto all = [&](const auto& names) { return std::all_of(std::begin(names), std::end(names), has); };
  std::vector<std::string> metrics;
  if (all(kStatisticMetrics)) {
    metrics.assign(std::begin(kStatisticMetrics), std::end(kStatisticMetrics));
  } else if (has("Cosine") && has("MaxAbsErr")) {
    // Before 8.2, there was no Euclidean distance.
    for (const std::string_view name : kTensorMetrics) {
      if (has(name)) metrics.emplace_back(name);
    }
    add_own_columns(header, metrics);
  }
  if (!metrics.empty() && has(kConsistent)) metrics.emplace_back(kConsistent);
  return metrics;
}

class RankReader {
 public:
  RankReader(const RankFiles& files, const MergeConfig& config) : files_(files), config_(config) {
    result_.rank = files.rank;
    result_.values.emplace_back();
    for (std::size_t i = 0; i < config.apis.size(); ++i) api_numbers_.emplace(config.apis[i], i);
    found_.resize(config.apis.size());
  }

  RankValues run() {
    for (const std::string& path : files_.paths) {
      path_ = &path;
      at_header_ = true;
      const sheets::RowVisitor visit = [&](std::span<const sheets::Cell> cells) { row(cells); };
      if (files_.workbook) {
        sheets::read_xlsx(
            open_file(path), [&](std::string_view) { at_header_ = true; }, visit);
      } else {
        const auto file = open_file(path);
        sheets::CsvRows rows(*file);
        std::vector<std::string> fields;
        std::vector<sheets::Cell> cells;
        while (rows.next(fields)) {
          cells.clear();
          for (const std::string& field : fields) cells.push_back({Kind::text, 0, field});
          row(cells);
        }
      }
    }
    finish();
    return std::move(result_);
  }

 private:
  /// The maximum of one side, over all rows.
  struct Maximum {
    std::size_t column = SIZE_MAX;
    bool only_numbers = true;  // or texts of numbers
    bool fraction = false;

    bool real() const { return only_numbers && fraction; }
    void look_at(const sheets::Cell& cell) {
      const std::optional<double> number = number_of(cell.kind, cell.number, cell.text);
      only_numbers = only_numbers && number;
      fraction = fraction || (number && (std::isinf(*number) || *number != std::floor(*number)));
    }
  };

  void row(std::span<const sheets::Cell> cells) {
    if (at_header_) {
      at_header_ = false;
      take_header(cells);
      return;
    }
    ++rows_;
    if (!result_.left_out.empty()) return;
    if (cells.size() > header_.size())
      throw FormatError(display(*path_), "a row has more cells than the header");
    if (files_.workbook) {
      npu_.look_at(cell_at(cells, npu_.column));
      bench_.look_at(cell_at(cells, bench_.column));
    }
    const sheets::Cell name = cell_at(cells, name_column_);
    if (name.kind != Kind::text) return;
    const std::optional<std::size_t> api = api_of(name.text);
    if (!api) return;
    // If several rows have one name, the first counts.
    if (names_.contains(name.text)) return;
    take_row(cells, name.text, *api);
  }

  static sheets::Cell cell_at(std::span<const sheets::Cell> cells, std::size_t column) {
    return column < cells.size() ? cells[column] : sheets::Cell{};
  }

  void take_header(std::span<const sheets::Cell> cells) {
    std::vector<std::string> header;
    for (const sheets::Cell& cell : cells) header.emplace_back(plain(cell.text));
    if (!header_.empty()) {
      if (header != header_) throw FormatError(display(*path_), "its parts have different columns");
      return;
    }
    header_ = std::move(header);
    const std::vector<std::string> metrics = metrics_of(header_);
    name_column_ = column_of("NPU Name");
    npu_.column = column_of("NPU max");
    bench_.column = column_of("Bench max");
    if (column_of("NPU MD5") != SIZE_MAX) {
      result_.left_out = "it compares checksums ('md5' dump task), which have nothing to merge";
    } else if (metrics.empty() || name_column_ == SIZE_MAX) {
      result_.left_out = "it does not have the columns of a comparison of statistics or tensors";
    }
    result_.indices = config_.indices.empty() ? metrics : config_.indices;
    for (const std::string& index : result_.indices) {
      if (result_.left_out.empty() && std::find(metrics.begin(), metrics.end(), index) == metrics.end())
        result_.left_out = "it has no index '" + display(index) + "'";
      columns_.push_back(column_of(index));
      const bool tensor = std::find(metrics.begin(), metrics.end(), "Cosine") != metrics.end();
      kinds_.push_back(index == kConsistent ? Kind::boolean : tensor ? Kind::number : Kind::text);
    }
    cells_.resize(result_.indices.size());
  }

  std::size_t column_of(std::string_view name) const {
    const auto found = std::find(header_.begin(), header_.end(), name);
    return found == header_.end() ? SIZE_MAX : static_cast<std::size_t>(found - header_.begin());
  }

  /// The first API that the name begins with; a name can belong to several APIs.
  std::optional<std::size_t> api_of(std::string_view name) {
    std::optional<std::size_t> first;
    for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
      const auto api = api_numbers_.find(name.substr(0, dot));
      if (api == api_numbers_.end()) continue;
      found_[api->second] = true;
      if (!first || api->second < *first) first = api->second;
    }
    return first;
  }

  void take_row(std::span<const sheets::Cell> cells, std::string_view name, std::size_t api) {
    apis_.push_back(api);
    result_.names.push_back(*names_.insert(result_.keep(name)).first);
    std::optional<std::uint32_t> maxima;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      sheets::Cell cell = cell_at(cells, columns_[i]);
      if (!files_.workbook) cell = typed(cell, kinds_[i]);
      cell.text = plain(cell.text);
      const bool nothing =
          cell.kind == Kind::text && (cell.text == "N/A" || cell.text == "unsupported" || cell.text == "Nan");
      if (!nothing || npu_.column == SIZE_MAX || bench_.column == SIZE_MAX) {
        cells_[i].push_back(keep_value(cell));
        continue;
      }
      if (!maxima) {
        Value both;
        both.kind = Kind::text;
        both.maxima = true;
        both.npu = keep_value(cell_at(cells, npu_.column));
        both.bench = keep_value(cell_at(cells, bench_.column));
        maxima = add(both);
      }
      cells_[i].push_back(*maxima);
    }
  }

  /// csv has only text, so the column decides the type that a workbook would have.
  static sheets::Cell typed(sheets::Cell cell, Kind kind) {
    if (kind == Kind::boolean && (cell.text == "True" || cell.text == "False"))
      return {Kind::boolean, cell.text == "True" ? 1.0 : 0.0, {}};
    if (kind != Kind::number) return cell;
    const auto number = parse_number(cell.text);
    if (!number || !std::isfinite(*number)) return cell;
    return {Kind::number, *number, {}};
  }

  std::uint32_t add(const Value& value) {
    if (result_.values.size() == UINT32_MAX)
      throw FormatError(display(*path_), "more values than can be merged");
    result_.values.push_back(value);
    return static_cast<std::uint32_t>(result_.values.size() - 1);
  }

  std::uint32_t keep_value(const sheets::Cell& cell) {
    if (cell.kind == Kind::empty) return 0;
    Value value;
    value.kind = cell.kind;
    value.number = cell.number;
    if (cell.kind != Kind::text) {
      const auto [known, inserted] = numbers_.try_emplace({cell.kind, cell.number}, 0);
      // Only few numbers are worth remembering: 0, 1, and the maxima that every index of a row shows.
      if (inserted) known->second = add(value);
      const std::uint32_t id = known->second;
      if (numbers_.size() > kMostRemembered) numbers_.clear();
      return id;
    }
    if (cell.text.size() > kShort) {
      value.text = result_.keep(cell.text);
      return add(value);
    }
    if (const auto known = texts_.find(cell.text); known != texts_.end()) return known->second;
    value.text = result_.keep(cell.text);
    const std::uint32_t id = add(value);
    if (texts_.size() < kMostRemembered) texts_.emplace(value.text, id);
    return id;
  }

  void finish() {
    if (header_.empty()) {
      result_.left_out = "it is empty";
    } else if (rows_ == 0 && result_.left_out.empty()) {
      result_.left_out = "it has no rows";
    }
    result_.npu_real = files_.workbook && npu_.real();
    result_.bench_real = files_.workbook && bench_.real();
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (!found_[i]) result_.not_found.push_back(config_.apis[i]);
    }
    // Rows are in the order of the APIs, then in that of the result.
    std::vector<std::uint32_t> order(apis_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return apis_[a] < apis_[b]; });
    const auto sorted = [&](const auto& list) {
      std::decay_t<decltype(list)> out;
      out.reserve(list.size());
      for (const std::uint32_t i : order) out.push_back(list[i]);
      return out;
    };
    result_.names = sorted(result_.names);
    for (auto& column : cells_) result_.columns.push_back(sorted(column));
  }

  struct NumberHash {
    std::size_t operator()(const std::pair<Kind, double>& key) const {
      return std::hash<double>()(key.second) * 3 + static_cast<std::size_t>(key.first);
    }
  };
  static constexpr std::size_t kShort = 11;  // "unsupported"
  static constexpr std::size_t kMostRemembered = 4096;

  const RankFiles& files_;
  const MergeConfig& config_;
  const std::string* path_ = nullptr;
  RankValues result_;
  bool at_header_ = true;
  std::uint64_t rows_ = 0;
  std::vector<std::string> header_;
  std::size_t name_column_ = SIZE_MAX;
  Maximum npu_;
  Maximum bench_;
  std::vector<std::size_t> columns_;  // of the indices
  std::vector<Kind> kinds_;           // of the indices, in csv
  std::vector<std::vector<std::uint32_t>> cells_;
  std::vector<std::size_t> apis_;  // of the rows taken
  std::unordered_map<std::string_view, std::size_t> api_numbers_;
  std::vector<bool> found_;
  std::unordered_set<std::string_view> names_;
  std::unordered_map<std::string_view, std::uint32_t> texts_;
  std::unordered_map<std::pair<Kind, double>, std::uint32_t, NumberHash> numbers_;
};

}  // namespace

std::string_view RankValues::keep(std::string_view text) {
  if (text.empty()) return {};
  char* const place = static_cast<char*>(memory->allocate(text.size(), 1));
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

std::string RankValues::text_of(const RankValue& value, bool real) const {
  if (real) return python_repr(number_of(value.kind, value.number, value.text).value_or(0));
  switch (value.kind) {
    case Kind::empty:
      return {};
    case Kind::text:
      return std::string(value.text);
    case Kind::boolean:
      return value.number != 0 ? "True" : "False";
    case Kind::number:
      break;
  }
  if (value.number == std::floor(value.number)) return fmt::format("{:.0f}", value.number);
  return python_repr(value.number);
}

report::Cell RankValues::cell(std::size_t index, std::size_t row, report::Scratch& scratch) const {
  const RankValue& value = values[columns[index][row]];
  if (value.maxima) {
    return report::Text{scratch.keep("NPU:" + text_of(values[value.npu], npu_real) +
                                     "  Bench:" + text_of(values[value.bench], bench_real))};
  }
  switch (value.kind) {
    case Kind::number:
      if (is_whole(value.number)) return static_cast<std::int64_t>(value.number);
      return value.number;
    case Kind::boolean:
      return value.number != 0;
    default:
      return report::Text{value.text};
  }
}

RankValues read_rank(const RankFiles& files, const MergeConfig& config) {
  try {
    return RankReader(files, config).run();
  } catch (const Error& error) {
    RankValues nothing;
    nothing.rank = files.rank;
    nothing.left_out = error.what();
    nothing.unreadable = true;
    return nothing;
  }
}

}  // namespace msprobe::merge_result
