// SPDX-License-Identifier: Apache-2.0
// Reads the rows of a monitor's csv file one by one, in the layout of either monitor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sheets/csv_rows.hpp"
#include "support/byte_source.hpp"

namespace msprobe::monitor {

/// Represents a cell that is blank or holds other text: the file says nothing, not even that the value is
/// NaN. It is a NaN with a special payload, so that code which looks only for finite numbers needs no special
/// case.
double no_number();
bool is_no_number(double value);

/// One tensor in one step. Texts and values are valid until the next one is read.
struct MonitorRow {
  /// Named as the first monitor names its files: actv, actv_grad, grad_unreduced, grad_reduced, exp_avg,
  /// exp_avg_sq, param_origin, param_updated, mg_direction, comm, ... The second monitor's scopes are
  /// translated to the same words.
  std::string_view quantity;
  std::optional<std::int64_t> stage;  // none: communication, or a single model of the second monitor
  std::string_view name;
  std::int64_t step = 0;
  /// Counts from 0. If the second monitor has no such column: the number of earlier calls in the step.
  std::optional<std::int64_t> micro_step;
  /// One for each of statistics().
  std::span<const double> values;
  std::string_view shape;
  std::string_view dtype;
  bool absent = false;  // no tensor was there: every value is NaN, or no number
};

/// Memory: one row, and for modules of the second monitor the names of one step.
class MonitorRows {
 public:
  /// FormatError naming the file if its first row is not the head of a monitor's table.
  MonitorRows(std::shared_ptr<const ByteSource> file, const std::string& prefix);

  /// Columns with numbers, in the file's order.
  const std::vector<std::string>& statistics() const { return statistics_; }
  /// False at the end of the file. FormatError for text that is not csv. Rows that do not fit the header are
  /// left out.
  bool next(MonitorRow& row);
  struct LeftOut {
    std::uint64_t rows = 0;
    std::string first;  // "line 3: fewer fields than the header"
    /// A sentence for the file of that name; empty if nothing was left out.
    std::string sentence(const std::string& file) const;
  };
  const LeftOut& left_out() const { return left_out_; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  void read_head();
  bool take(MonitorRow& row);
  bool take_misformed();
  bool next_part(MonitorRow& row);
  void number_call(MonitorRow& row);
  void leave_out(const char* reason);
  std::string_view field(std::size_t column) const;

  std::shared_ptr<const ByteSource> file_;
  sheets::CsvRows rows_;
  std::string prefix_;
  std::vector<std::string> fields_;
  std::size_t columns_ = 0;
  std::size_t stage_ = kNone;
  std::size_t name_ = kNone;
  std::size_t scope_ = kNone;
  std::size_t step_ = kNone;
  std::size_t micro_step_ = kNone;
  std::size_t shape_ = kNone;
  std::size_t dtype_ = kNone;
  std::vector<std::string> statistics_;
  std::vector<std::size_t> places_;  // columns of the statistics
  std::vector<double> values_;

  // The rest of a misformed row, which contains several tensors in sequence.
  std::vector<std::string> parts_;
  std::size_t next_part_ = 0;
  std::int64_t parts_step_ = 0;
  std::string part_name_;

  struct Calls {
    std::int64_t step = 0;
    std::int64_t count = 0;
  };
  std::unordered_map<std::string, Calls> calls_;

  LeftOut left_out_;
};

}  // namespace msprobe::monitor
