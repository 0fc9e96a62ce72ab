// SPDX-License-Identifier: Apache-2.0
#include "monitor/input/rows.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

/// A quiet NaN whose payload no arithmetic produces.
constexpr std::uint64_t kNoNumber = 0x7ff8'6e6f'6e75'6d62;

double cell_value(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && at == end) return value;
  if (text == "True") return 1;
  if (text == "False") return 0;
  return parse_number(text).value_or(no_number());
}

/// A whole number, including one that a column of floats turned into `3.0`.
std::optional<std::int64_t> cell_integer(std::string_view text) {
  if (const auto value = whole_number<std::int64_t>(text)) return value;
  constexpr double kMost = 9e15;
  const auto real = parse_number(text);
  if (!real || !(std::fabs(*real) < kMost) || std::trunc(*real) != *real) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

bool is_no_value(std::string_view text) {
  return text.empty() || text == "nan";
}

/// Translates a scope of the second monitor to the quantity of the first one.
std::string_view quantity_of_scope(std::string_view scope) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kScopes = {{
      {"forward", "actv"},
      {"backward", "actv_grad"},
      {"unreduced", "grad_unreduced"},
      {"reduced", "grad_reduced"},
  }};
  for (const auto& [theirs, ours] : kScopes) {
    if (scope == theirs) return ours;
  }
  return scope;
}

}  // namespace

double no_number() {
  return std::bit_cast<double>(kNoNumber);
}

bool is_no_number(double value) {
  return std::bit_cast<std::uint64_t>(value) == kNoNumber;
}

MonitorRows::MonitorRows(std::shared_ptr<const ByteSource> file, const std::string& prefix)
    : file_(std::move(file)), rows_(*file_), prefix_(prefix) {
  read_head();
}

void MonitorRows::read_head() {
  if (!rows_.next(fields_))
    throw FormatError(display(file_->name()), "is empty: a monitor's table has a header");
  columns_ = fields_.size();
  const auto column = [&](std::string_view name) {
    const auto found = std::find(fields_.begin(), fields_.end(), name);
    return found == fields_.end() ? kNone : static_cast<std::size_t>(found - fields_.begin());
  };
  scope_ = column("scope");
  name_ = column("name");
  if (name_ == kNone) name_ = column("module_name");
  stage_ = column("vpp_stage");
  step_ = column("step");
  micro_step_ = column("micro_step");
  shape_ = column("shape");
  dtype_ = column("dtype");
  if (name_ == kNone || step_ == kNone || stage_ == kNone)
    throw FormatError(display(file_->name()),
                      "is not a table of a training monitor: it lacks the columns vpp_stage, name and step");
  for (std::size_t i = 0; i < columns_; ++i) {
    if (i == name_ || i == stage_ || i == step_ || i == micro_step_ || i == scope_ || i == shape_ ||
        i == dtype_)
      continue;
    if (std::find(statistics_.begin(), statistics_.end(), fields_[i]) != statistics_.end())
      throw FormatError(display(file_->name()), "has two columns " + display(fields_[i]));
    statistics_.push_back(fields_[i]);
    places_.push_back(i);
  }
  values_.resize(statistics_.size());
}

std::string_view MonitorRows::field(std::size_t column) const {
  return column == kNone ? std::string_view() : std::string_view(fields_[column]);
}

void MonitorRows::leave_out(const char* reason) {
  if (left_out_.rows++ == 0) left_out_.first = "line " + std::to_string(rows_.line()) + ": " + reason;
}

std::string MonitorRows::LeftOut::sentence(const std::string& file) const {
  if (rows == 0) return {};
  return display(file) + ": " + human_count(rows) +
         (rows == 1 ? " row was skipped, " : " rows were skipped, first ") + first;
}

bool MonitorRows::next(MonitorRow& row) {
  if (next_part(row)) return true;
  while (rows_.next(fields_)) {
    // Communication has no stage, and the Python tool's first monitor shifts its columns.
    if (stage_ == 0 && name_ == 1 && step_ == 2 && micro_step_ == kNone && scope_ == kNone &&
        !is_no_value(fields_[0]) && !cell_integer(fields_[0])) {
      if (take_misformed() && next_part(row)) return true;
    } else if (take(row)) {
      return true;
    }
  }
  return false;
}

bool MonitorRows::take(MonitorRow& row) {
  if (fields_.size() != columns_) {
    leave_out(fields_.size() < columns_ ? "fewer fields than the header" : "more fields than the header");
    return false;
  }
  const auto step = cell_integer(field(step_));
  if (!step || *step < 0) {
    leave_out("the step is not a number");
    return false;
  }
  const std::string_view stage = field(stage_);
  row.stage = is_no_value(stage) ? std::nullopt : cell_integer(stage);
  if (!row.stage && !is_no_value(stage)) {
    leave_out("the stage is not a number");
    return false;
  }
  row.step = *step;
  row.name = field(name_);
  row.quantity = prefix_;
  row.shape = field(shape_);
  row.dtype = field(dtype_);
  row.micro_step = cell_integer(field(micro_step_));
  if (scope_ != kNone) {
    if (row.stage == -1) row.stage.reset();
    row.quantity = quantity_of_scope(field(scope_));
    if (micro_step_ == kNone) {
      number_call(row);
    } else if (row.quantity != "grad_unreduced") {
      row.micro_step.reset();  // it is the count of micro steps here
    } else if (row.micro_step && *row.micro_step > 0) {
      --*row.micro_step;  // the column counts from 1
    }
  }
  for (std::size_t i = 0; i < places_.size(); ++i) values_[i] = cell_value(fields_[places_[i]]);
  row.values = values_;
  row.absent = shape_ != kNone && row.shape == "nan" && row.quantity != "comm" && row.quantity != "other" &&
               std::ranges::all_of(values_, [](double each) { return std::isnan(each); });
  return true;
}

void MonitorRows::number_call(MonitorRow& row) {
  if (row.quantity != "actv" && row.quantity != "actv_grad") return;
  std::string key(row.quantity);
  key += row.name;
  // Only the names of the current step are kept.
  if (!calls_.empty() && calls_.begin()->second.step != row.step) calls_.clear();
  Calls& calls = calls_.try_emplace(std::move(key), Calls{row.step, 0}).first->second;
  row.micro_step = calls.count++;
}

bool MonitorRows::take_misformed() {
  const std::size_t each = columns_ - 3;
  const auto step = fields_.size() > 2 ? cell_integer(fields_[2]) : std::nullopt;
  if (each == 0 || !step || *step < 0) {
    leave_out("neither a stage nor communication");
    return false;
  }
  parts_.assign(1, fields_[1]);
  parts_.insert(parts_.end(), fields_.begin() + 3, fields_.end());
  // A row of several tensors pads the shorter ones with NaN: a trailing part that is all NaN is no tensor.
  while (parts_.size() > each &&
         std::all_of(parts_.end() - static_cast<std::ptrdiff_t>(std::min(each, parts_.size() - each)),
                     parts_.end(), [](const std::string& part) { return is_no_value(part); })) {
    parts_.resize(parts_.size() - std::min(each, parts_.size() - each));
  }
  parts_step_ = *step;
  next_part_ = 0;
  return true;
}

bool MonitorRows::next_part(MonitorRow& row) {
  const std::size_t each = columns_ - 3;
  const std::size_t begin = next_part_ * each;
  if (begin >= parts_.size()) {
    parts_.clear();
    return false;
  }
  row = {};
  row.quantity = "comm";
  part_name_ = fields_[0] + "_" + std::to_string(next_part_++);
  row.name = part_name_;
  row.step = parts_step_;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::size_t at = begin + places_[i] - 3;
    values_[i] = at < parts_.size() ? cell_value(parts_[at]) : no_number();
  }
  row.values = values_;
  return true;
}

}  // namespace msprobe::monitor
