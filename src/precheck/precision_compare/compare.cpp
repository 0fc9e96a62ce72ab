// SPDX-License-Identifier: Apache-2.0
#include "precheck/precision_compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dump/operations.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr const char* kSortedHint =
    "在npu上，topk的入参sorted=False时不生效，会返回有序tensor，而cpu上会返回无序tensor。 "
    "如果topk精度不达标，请检查是否是该原因导致的。";

/// Collects the rows of one operation.
class OperationRows {
 public:
  explicit OperationRows(const OutputName& name) : operation_(name.operation) { result_.name = name.api; }

  /// Adds a row. A row that `may_lack` figures has nothing to judge, and counts only without other rows.
  /// `known`: both files have it, and the pre-check did not skip it.
  void add(CallDirection direction, const PairRow& row, bool may_lack, bool known) {
    result_.unjudged = result_.unjudged || (known && row.status == PythonStatus::skip);
    DirectionRows& side = sides_[direction == CallDirection::backward];
    side.rows += 1;
    side.errors += row.status == PythonStatus::error;
    side.passes += row.status == PythonStatus::pass;
    side.skips += row.status == PythonStatus::skip && !may_lack;
    if (row.status == PythonStatus::skip) side.last_skip = row.message;
    if (row.status == PythonStatus::pass || row.reason.empty() || may_lack) return;
    // The first of the worst reasons stays.
    const bool is_error = row.status == PythonStatus::error;
    if (is_error > reason_is_error_ || result_.reason.empty()) {
      const std::string_view output =
          std::string_view(row.name).substr(std::min(result_.name.size() + 1, row.name.size()));
      result_.reason = (output.empty() ? "" : display(output) + ": ") + row.reason;
      reason_is_error_ = is_error;
    }
  }

  OperationResult finish() {
    result_.forward = sides_[0].status();
    result_.backward = sides_[1].status();
    if (result_.forward == PythonStatus::skip) result_.message = sides_[0].last_skip;
    if (dump::is_listed("any_order", operation_) &&
        (result_.forward == PythonStatus::error || result_.backward == PythonStatus::error))
      result_.message += kSortedHint;
    return std::move(result_);
  }

 private:
  struct DirectionRows {
    std::size_t rows = 0;
    std::size_t errors = 0;
    std::size_t passes = 0;
    std::size_t skips = 0;
    std::string last_skip;

    PythonStatus status() const {
      if (rows == 0) return PythonStatus::none;
      if (errors != 0) return PythonStatus::error;
      return passes == 0 || skips != 0 ? PythonStatus::skip : PythonStatus::pass;
    }
  };

  std::string operation_;
  OperationResult result_;
  DirectionRows sides_[2];
  bool reason_is_error_ = false;
};

PairRow skipped(const DetailsRow& row, std::string message, std::string reason) {
  PairRow skip;
  skip.name = row.name;
  skip.status = PythonStatus::skip;
  skip.message = std::move(message);
  skip.reason = std::move(reason);
  return skip;
}

bool has_no_elements(std::string_view shape) {
  // "(0,)", "(2, 0)": a whole part that is 0
  for (std::size_t at = shape.find('0'); at != std::string_view::npos; at = shape.find('0', at + 1)) {
    const char before = at == 0 ? '(' : shape[at - 1];
    const char behind = at + 1 == shape.size() ? ')' : shape[at + 1];
    if ((before == '(' || before == ' ' || before == ',') && (behind == ')' || behind == ',')) return true;
  }
  return false;
}

/// Whether a row has figures. The pre-check leaves the row of an operation that it skipped blank.
bool has_figures(const DetailsRow& row) {
  return std::ranges::any_of(
      row.figures, [](const FigureField& figure) { return figure.kind != FigureField::FieldKind::blank; });
}

class PrecisionComparison {
 public:
  PrecisionComparison(const DetailsFile& device, const DetailsFile& other, const Standards& standards,
                      std::optional<Selection> selection)
      : device_(device),
        other_(other),
        own_names_(device),
        other_names_(other),
        standards_(standards),
        selection_(selection) {}

  PrecisionResult run() {
    for (const DetailsRow& row : device_.rows) {
      if (result_.rows.size() % 4096 == 0) check_interrupt();
      take(row);
    }
    add_other_rows();
    for (OperationRows& operation : open_) result_.operations.push_back(operation.finish());
    return std::move(result_);
  }

 private:
  void take(const DetailsRow& row) {
    const auto name = parse_output_name(row.name);
    if (!name)
      return at_once(skipped(row, "The API name " + row.name + " is invalid.", "not the name of an output"));
    const RowsByName::RowsOfName found = other_names_.find(row.name);
    if (found.count == 0) {
      ++result_.without_partner;
      return add(*name, skipped(row, "", "missing from the other device's file"), false);
    }
    const std::size_t own = own_names_.find(row.name).count;
    if (own > 1 || found.count > 1) {
      const std::string reason =
          fmt::format("{} rows with this name, but {} of the other device", own, found.count);
      return add(*name, skipped(row, "", reason), false, true);
    }
    const bool no_type = trimmed(row.dtype).empty();
    const bool empty = has_no_elements(row.shape);
    if (no_type || empty || is_unjudged_type(row.dtype)) {
      const char* reason = no_type ? "nothing to judge" : empty ? "no elements" : "its type is not judged";
      return add(*name, skipped(row, row.message, reason), no_type || empty, no_type && has_figures(row));
    }
    add(*name, judge_pair(*name, row, other_.rows[found.first], standards_, selection_), false, true);
  }

  /// Adds a row whose name shows no operation to the operations as well.
  void at_once(PairRow row) {
    warn(display(row.message));
    OperationResult own;
    own.name = row.name;
    own.forward = own.backward = PythonStatus::skip;
    own.message = row.message;
    own.reason = row.reason;
    own.unjudged = true;
    result_.operations.push_back(std::move(own));
    result_.rows.push_back(std::move(row));
  }

  void add(const OutputName& name, PairRow judged, bool may_lack, bool known = false) {
    const auto [place, added] = numbers_.try_emplace(std::string(name.api), open_.size());
    if (added) open_.emplace_back(name);
    open_[place->second].add(name.direction, judged, may_lack, known);
    result_.rows.push_back(std::move(judged));
  }

  void add_other_rows() {
    for (const DetailsRow& row : other_.rows) {
      if (own_names_.find(row.name).count != 0) continue;
      ++result_.without_partner;
      PairRow lone = skipped(row, "", "only in the other device's file");
      const auto name = parse_output_name(row.name);
      if (name) {
        add(*name, std::move(lone), false);
      } else {
        at_once(std::move(lone));
      }
    }
  }

  void warn(std::string text) {
    constexpr std::size_t kMostWarnings = 100;
    if (result_.warnings.size() < kMostWarnings) {
      result_.warnings.push_back(std::move(text));
    } else if (result_.warnings.size() == kMostWarnings) {
      result_.warnings.emplace_back("there are more rows like these");
    }
  }

  const DetailsFile& device_;
  const DetailsFile& other_;
  RowsByName own_names_;
  RowsByName other_names_;
  const Standards& standards_;
  std::optional<Selection> selection_;
  PrecisionResult result_;
  std::vector<OperationRows> open_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

}  // namespace

PythonStatus OperationResult::worst() const {
  if (forward == PythonStatus::error || backward == PythonStatus::error) return PythonStatus::error;
  if (forward == PythonStatus::skip || backward == PythonStatus::skip) return PythonStatus::skip;
  return forward == PythonStatus::none ? backward : forward;
}

PrecisionResult compare_precision(const DetailsFile& device, const DetailsFile& other,
                                  const Standards& standards, std::optional<Selection> selection) {
  return PrecisionComparison(device, other, standards, selection).run();
}

}  // namespace msprobe::precheck
