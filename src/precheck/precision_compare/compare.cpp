// SPDX-License-Identifier: Apache-2.0
#include "precheck/precision_compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr const char* kSortedHint =
    "在npu上，topk的入参sorted=False时不生效，会返回有序tensor，而cpu上会返回无序tensor。 "
    "如果topk精度不达标，请检查是否是该原因导致的。";

/// The rows of one operation so far.
class Operation {
 public:
  explicit Operation(const OutputName& name) : operation_(name.operation) { result_.name = name.api; }

  const std::string& name() const { return result_.name; }

  /// `message` is what is told of a row that was skipped. A row that `may_lack` has nothing that could be
  /// judged, and counts only where there is no other.
  void add(Direction direction, const PairRow& row, bool unjudged_type, bool may_lack, bool by_python) {
    unjudged_last_ = unjudged_type;
    if (by_python && unjudged_type) return;  // as if there were no such row
    Side& side = sides_[direction == Direction::backward];
    side.rows += 1;
    side.errors += row.status == Status::error;
    side.passes += row.status == Status::pass;
    side.skips += row.status == Status::skip && !may_lack;
    if (row.status == Status::skip) side.last_skip = row.message;
    if (row.status == Status::pass || row.reason.empty() || may_lack) return;
    // The worst reason first told stays.
    const bool is_error = row.status == Status::error;
    if (is_error > reason_is_error_ || result_.reason.empty()) {
      const std::string_view output =
          std::string_view(row.name).substr(std::min(result_.name.size() + 1, row.name.size()));
      result_.reason = (output.empty() ? "" : display(output) + ": ") + row.reason;
      reason_is_error_ = is_error;
    }
  }

  OperationResult finish(const PrecisionTraits& traits) {
    const bool by_python = traits.by_neighbours;
    if (by_python && unjudged_last_) {
      result_.forward = result_.backward = Status::skip;
      result_.message = "This data type does not support benchmark compare.";
      return std::move(result_);
    }
    result_.forward = sides_[0].status(by_python);
    result_.backward = sides_[1].status(by_python);
    if (result_.forward == Status::skip) result_.message = sides_[0].last_skip;
    if (operation_ == "topk" &&
        (result_.forward == Status::error || (result_.backward == Status::error && !by_python)))
      result_.message += kSortedHint;
    return std::move(result_);
  }

 private:
  struct Side {
    std::size_t rows = 0;
    std::size_t errors = 0;
    std::size_t passes = 0;
    std::size_t skips = 0;
    std::string last_skip;

    Status status(bool by_python) const {
      if (rows == 0) return Status::none;
      if (errors != 0) return Status::error;
      if (passes == 0 || (skips != 0 && !by_python)) return Status::skip;
      return Status::pass;
    }
  };

  std::string operation_;
  OperationResult result_;
  Side sides_[2];
  bool unjudged_last_ = false;
  bool reason_is_error_ = false;
};

PairRow skipped(const DetailsRow& row, std::string message, std::string reason) {
  PairRow skip;
  skip.name = row.name;
  skip.status = Status::skip;
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

class PrecisionComparison {
 public:
  PrecisionComparison(const DetailsFile& device, const DetailsFile& other, const Standards& standards,
                      const PrecisionTraits& traits)
      : device_(device),
        other_(other),
        own_names_(device),
        other_names_(other),
        standards_(standards),
        traits_(traits) {
    const auto is_numeric = [&](Figure figure) {
      return std::ranges::all_of(
          device.rows, [&](const DetailsRow& row) { return row[figure].kind == FigureField::Kind::number; });
    };
    traits_.numeric_rates = is_numeric(Figure::relative_rate);
    traits_.numeric_binary = is_numeric(Figure::binary);
  }

  PrecisionResult run() {
    for (const DetailsRow& row : device_.rows) {
      if (result_.rows.size() % 4096 == 0) check_interrupt();
      if (!take(row)) return std::move(result_);  // what was not finished is lost
    }
    if (!traits_.leaves_out_missing) add_other_rows();
    for (Operation& operation : open_) result_.operations.push_back(operation.finish(traits_));
    return std::move(result_);
  }

 private:
  /// False where the Python tool ends.
  bool take(const DetailsRow& row) {
    const auto name = parse_output_name(row.name, traits_);
    if (!name) {
      at_once(skipped(row, "The API name " + row.name + " is invalid.", "not the name of an output"));
      return true;
    }
    const RowsByName::Found found = other_names_.find(row.name);
    if (found.count == 0) {
      if (traits_.leaves_out_missing) {
        warn("This API : " + display(row.name) + " does not exist in the GPU data.");
        return true;
      }
      ++result_.without_partner;
      add(*name, row, skipped(row, "", "missing from the other device's file"), false);
      return true;
    }
    if (found.count > 1 && traits_.stops_at_duplicate) {
      warn("Analyse csv Error: This API : " + display(row.name) + " has multiple records in the GPU data.");
      return false;
    }
    const std::size_t own = own_names_.find(row.name).count;
    if (!traits_.stops_at_duplicate && (own > 1 || found.count > 1)) {
      add(*name, row,
          skipped(row, "",
                  fmt::format("{} rows with this name, but {} of the other device", own, found.count)),
          false);
      return true;
    }
    const bool no_type = trimmed(row.dtype).empty();
    const bool empty = traits_.by_neighbours ? row.shape == "(0,)" : has_no_elements(row.shape);
    if (no_type || empty || is_unjudged_type(row.dtype)) {
      const char* reason = no_type ? "nothing to judge" : empty ? "no elements" : "its type is not judged";
      add(*name, row, skipped(row, row.message, reason), no_type || empty);
      return true;
    }
    PairRow judged = judge_pair(*name, row, other_.rows[found.first], standards_, traits_);
    if (judged.broken) {
      at_once(std::move(judged));
    } else {
      add(*name, row, std::move(judged), false);
    }
    return true;
  }

  /// A row that the Python tool gives up.
  void at_once(PairRow row) {
    warn((row.broken ? "Get api status error: " : "") + display(row.message));
    OperationResult own;
    own.name = row.name;
    own.forward = own.backward = Status::skip;
    own.message = row.message;
    own.reason = row.reason;
    result_.operations.push_back(std::move(own));
    result_.rows.push_back(std::move(row));
  }

  void add(const OutputName& name, const DetailsRow& row, PairRow judged, bool may_lack) {
    operation_of(name).add(name.direction, judged, is_unjudged_type(row.dtype), may_lack,
                           traits_.by_neighbours);
    result_.rows.push_back(std::move(judged));
  }

  Operation& operation_of(const OutputName& name) {
    if (!traits_.by_neighbours) {
      const auto [place, added] = numbers_.try_emplace(std::string(name.api), open_.size());
      if (added) open_.emplace_back(name);
      return open_[place->second];
    }
    if (!open_.empty() && open_.back().name() != name.api) {
      result_.operations.push_back(open_.back().finish(traits_));
      open_.clear();
    }
    if (open_.empty()) open_.emplace_back(name);
    return open_.back();
  }

  void add_other_rows() {
    for (const DetailsRow& row : other_.rows) {
      if (own_names_.find(row.name).count != 0) continue;
      ++result_.without_partner;
      PairRow lone = skipped(row, "", "only in the other device's file");
      const auto name = parse_output_name(row.name, traits_);
      if (name) {
        add(*name, row, std::move(lone), false);
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
  PrecisionTraits traits_;
  PrecisionResult result_;
  std::vector<Operation> open_;  // by neighbours: at most one
  std::unordered_map<std::string, std::size_t> numbers_;
};

}  // namespace

Status OperationResult::worst() const {
  if (forward == Status::error || backward == Status::error) return Status::error;
  if (forward == Status::skip || backward == Status::skip) return Status::skip;
  return forward == Status::none ? backward : forward;
}

PrecisionResult compare_precision(const DetailsFile& device, const DetailsFile& other,
                                  const Standards& standards, const PrecisionTraits& traits) {
  return PrecisionComparison(device, other, standards, traits).run();
}

}  // namespace msprobe::precheck
