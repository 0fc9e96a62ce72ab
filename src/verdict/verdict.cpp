// SPDX-License-Identifier: Apache-2.0
#include "dump/side.hpp"
#include "verdict/result.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "dump/names.hpp"
#include "measuring/choose_mode.hpp"
#include "measuring/sum_precision.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::verdict {
namespace {

using dump::Item;
using dump::kMax;
using dump::RequiresGrad;
using dump::ValueClass;
using measuring::kCosine;
using measuring::kOneThousandth;
using measuring::MeasuredRank;
using measuring::Mode;
using measuring::SumDifference;
using pairing::OtherName;
using pairing::Pair;
using pairing::Rules;
using pairing::Unmatched;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The rules that do not apply to an operation.
enum class Exemption { none, everything, inputs };

bool is_non_finite(const dump::RecordedValue& value, const TextPool& pool) {
  // Python reads a text that spells infinity out as a number, but this rule does not.
  if (value.kind == dump::ValueKind::text &&
      pool.at(value.text).find_first_of("tT") != std::string_view::npos)
    return false;
  const ValueClass type = dump::classify(value, pool).type;
  return type == ValueClass::nan || type == ValueClass::inf || type == ValueClass::neg_inf;
}

/// True also for torch.float32 and Float32, two names of one type.
bool same_dtype(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto type = tensor::dtype_from_name(a);
  return type && type == tensor::dtype_from_name(b);
}

class RowJudge {
 public:
  RowJudge(const MeasuredRank& rank, const Rules& rules, Judgement& judgement)
      : rank_(rank),
        rules_(rules),
        python_(rank.python),
        out_(judgement),
        consistent_(rank.consistent && (rank.mode == Mode::tensor || !python_.consistent_as_others)) {}

  void run() {
    if (!python_.unmatched_pass) explain_unmatched();
    // Entries are judged independently.
    const std::vector<std::vector<std::size_t>> entries = rows_by_entry();
    constexpr std::size_t kTogether = 512;
    parallel_for((entries.size() + kTogether - 1) / kTogether, [&](std::size_t block) {
      RowJudge judge(*this);
      const std::size_t end = std::min(entries.size(), (block + 1) * kTogether);
      for (std::size_t i = block * kTogether; i < end; ++i) judge.judge_rows(entries[i]);
    });
  }

 private:
  const dump::Side& target() const { return rank_.target; }
  const dump::Side& golden() const { return rank_.golden; }

  /// If two orders were merged, the rows of an entry may be scattered.
  std::vector<std::vector<std::size_t>> rows_by_entry() const {
    std::vector<std::vector<std::size_t>> entries(target().apis.size());
    for (std::size_t i = 0; i < rank_.rows.size(); ++i) {
      const Item* const item = rank_.find_target(rank_.rows[i]);
      if (item == nullptr) continue;
      if (entries[item->api].empty()) entries[item->api].reserve(target().apis[item->api].count);
      entries[item->api].push_back(i);
    }
    std::erase_if(entries, [](const auto& rows) { return rows.empty(); });
    return entries;
  }

  void judge_rows(const std::vector<std::size_t>& rows) {
    const std::uint32_t api = rank_.target_item(rank_.rows[rows.front()]).api;
    if (api < rank_.entries_reached) return judge_api(api, rows);
    for (const std::size_t i : rows) out_.findings[i].add(RowRule::left_out);
  }

  void explain_unmatched() {
    if (rank_.mode == Mode::md5) return;  // it has a separate message
    for (std::size_t i = 0; i < rank_.rows.size(); ++i) {
      const Pair& row = rank_.rows[i];
      if (rank_.is_left_out(row)) continue;
      if (!row.has_target()) {
        out_.findings[i].add(RowRule::target_missing);
      } else if (row.reason == Unmatched::entry_missing) {
        out_.findings[i].add(RowRule::entry_missing);
      } else if (row.reason == Unmatched::item_missing) {
        out_.findings[i].add(RowRule::item_missing);
      } else if (row.reason == Unmatched::other_code) {
        out_.findings[i].add(RowRule::other_code);
      } else if (row.reason == Unmatched::dtype) {
        out_.findings[i].add(RowRule::dtype_unpaired);
      }
    }
  }

  void judge_api(std::uint32_t api, const std::vector<std::size_t>& rows) {
    inputs_.clear();
    outputs_.clear();
    for (const std::size_t i : rows) {
      const Item& item = rank_.target_item(rank_.rows[i]);
      const bool is_output = python_.outputs_by_name
                                 ? target().name(item).find(".output.") != std::string::npos
                                 : item.state == dump::State::output;
      (is_output ? outputs_ : inputs_).push_back(i);
    }
    const Exemption exemption = exemption_of(api);
    if (exemption == Exemption::everything) return;
    if (rank_.mode == Mode::md5) {
      if (exemption == Exemption::none) checksums(inputs_);
      checksums(outputs_);
      return;
    }
    const bool aggregate = exemption == Exemption::none;
    per_row(RowRule::non_finite, aggregate, &RowJudge::non_finite);
    if (!python_.unknown_pass && rank_.mode == Mode::statistics)
      per_row(RowRule::unknown, aggregate, &RowJudge::unknown);
    if (aggregate && rank_.mode == Mode::tensor) ratio_drop();
    if (aggregate && rank_.mode == Mode::statistics) {
      measure_norms();
      norm_error();
    }
    // Inference has no gradients.
    if (!consistent_) per_row(RowRule::requires_grad, aggregate, &RowJudge::requires_grad);
    if (aggregate) each(RowRule::scalar_argument, inputs_, &RowJudge::scalar_argument);
    per_row(RowRule::dtype, aggregate, &RowJudge::dtype);
    per_row(RowRule::shape, aggregate, consistent_ ? &RowJudge::consistent_shape : &RowJudge::shape);
    if (aggregate && rank_.mode == Mode::statistics) norm_growth();
    if (aggregate && rank_.mode == Mode::tensor) cosine_drop();
    if (aggregate) count_outputs();
  }

  /// Counts outputs with a number, and those of them that a limit can judge.
  void count_outputs() {
    const bool statistics = rank_.mode == Mode::statistics;
    const bool judged = statistics ? input_norm_error_ < rules_.norm_error_input_below
                                   : smallest(inputs_, kOneThousandth) > rules_.ratio_input_above ||
                                         smallest(inputs_, kCosine) > rules_.cosine_input_above;
    std::uint64_t known = 0;
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      known += statistics ? !std::isnan(output_norm_errors_[i]) : metric(outputs_[i], kCosine).has_value();
    std::atomic_ref(out_.outputs_known) += known;
    if (judged) std::atomic_ref(out_.outputs_judged) += known;
  }

  Exemption exemption_of(std::uint32_t api) const {
    std::string_view operation;
    if (python_.exempts_by_first_input) {
      if (inputs_.empty()) return Exemption::none;
      const std::string_view name = target().name(rank_.target_item(rank_.rows[inputs_.front()]));
      const std::size_t dot = name.find('.');
      if (dot == std::string_view::npos) return Exemption::none;
      operation = name.substr(dot + 1, name.find('.', dot + 1) - dot - 1);
    } else {
      const dump::EntryName parsed = target().parsed_name(api);
      if (parsed.is_module || parsed.direction == dump::Direction::debug) return Exemption::none;
      operation = parsed.operation();
    }
    if (rank_.merged_ranks) operation = without_rank(operation);
    if (rules_.never_judged.contains(operation)) return Exemption::everything;
    return rules_.outputs_only.contains(operation) ? Exemption::inputs : Exemption::none;
  }

  /// Cuts `matmul_rank3` to `matmul`.
  static std::string_view without_rank(std::string_view operation) {
    const std::size_t at = operation.rfind("_rank");
    return at != std::string_view::npos && dump::is_digits(operation.substr(at + 5)) ? operation.substr(0, at)
                                                                                     : operation;
  }

  using OfRow = bool (RowJudge::*)(const Pair& row) const;
  void each(RowRule rule, const std::vector<std::size_t>& indices, OfRow speaks) {
    for (const std::size_t i : indices) {
      if ((this->*speaks)(rank_.rows[i])) out_.findings[i].add(rule);
    }
  }
  void per_row(RowRule rule, bool inputs_too, OfRow speaks) {
    if (inputs_too) each(rule, inputs_, speaks);
    each(rule, outputs_, speaks);
  }

  // Rule 1.
  bool non_finite(const Pair& row) const {
    const auto is_bad = [](const Item& item, const TextPool& pool) {
      return is_non_finite(item.statistics[kMax], pool) || is_non_finite(item.statistics[dump::kMin], pool);
    };
    if (!is_bad(rank_.target_item(row), target().pool)) return false;
    // A mask in another code base may consist of infinities.
    if (row.reason == Unmatched::other_code) {
      const dump::RecordedValue max = rank_.target_item(row).statistics[kMax];
      return dump::classify(max, target().pool).type == ValueClass::nan;
    }
    return !row.matched() || !is_bad(rank_.golden_item(row), golden().pool);
  }

  bool unknown(const Pair& row) const {
    if (!row.matched() || target().header.task == "structure" || golden().header.task == "structure")
      return false;
    const Item& ours = rank_.target_item(row);
    const Item& theirs = rank_.golden_item(row);
    if (!ours.is_tensor || !theirs.is_tensor) return false;
    for (std::size_t which = 0; which < dump::kStatistics; ++which) {
      if (measuring::is_known(target(), ours, which) != measuring::is_known(golden(), theirs, which))
        return true;
    }
    return false;
  }

  /// A metric of a row, if it is a number.
  std::optional<double> metric(std::size_t index, measuring::Metric which) const {
    const measuring::TensorMetrics& metrics = rank_.metrics[index];
    if (metrics.status != measuring::MetricStatus::computed || metrics.is_scalar) return std::nullopt;
    const double value = metrics.value[which];
    return std::isnan(value) ? std::nullopt : std::optional(value);
  }
  double smallest(const std::vector<std::size_t>& indices, measuring::Metric which) const {
    double low = 1.0;
    for (const std::size_t i : indices) low = std::min(low, metric(i, which).value_or(1.0));
    return low;
  }

  /// Marks the bad outputs by their places among the outputs.
  template <typename IsBad>
  void mark_outputs(RowRule rule, IsBad&& is_bad) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (is_bad(i)) out_.findings[outputs_[python_.marks_first_output ? 0 : i]].add(rule);
    }
  }

  // Rule 2.
  void ratio_drop() {
    if (smallest(inputs_, kOneThousandth) <= rules_.ratio_input_above) return;
    mark_outputs(RowRule::ratio_drop, [&](std::size_t i) {
      return metric(outputs_[i], kOneThousandth).value_or(1.0) < rules_.ratio_output_below;
    });
  }

  /// The relative error of a row's norm. An unknown error does not count for an output, but for an input it
  /// does, because it could explain an output's error.
  double norm_error_of(const Pair& row, bool output) const {
    const double fraction = measuring::relative_fraction(rank_.difference(row, dump::kNorm));
    if (!(fraction > 0)) return fraction;
    const SumDifference sums = measuring::sum_difference(rank_, row, dump::kNorm);
    if (sums == SumDifference::rounded) return 0;
    return output && sums == SumDifference::unknown ? NAN : fraction;
  }

  /// The error in an aggregate: 0 if it is unknown.
  double aggregated(double error) const {
    return std::isnan(error) || (python_.finite_growth_only && std::isinf(error)) ? 0 : error;
  }

  /// Measures the norm errors that rules 3 and 8 use.
  void measure_norms() {
    input_norm_error_ = 0;
    for (const std::size_t i : inputs_)
      input_norm_error_ = std::max(input_norm_error_, aggregated(norm_error_of(rank_.rows[i], false)));
    output_norm_errors_.clear();
    for (const std::size_t i : outputs_) output_norm_errors_.push_back(norm_error_of(rank_.rows[i], true));
  }

  // Rule 3.
  void norm_error() {
    if (input_norm_error_ >= rules_.norm_error_input_below) return;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (output_norm_errors_[i] > rules_.norm_error_output_above)
        out_.findings[outputs_[i]].add(RowRule::norm_error);
    }
  }

  // Rule 4.
  bool requires_grad(const Pair& row) const {
    if (!row.has_target() || row.other_name == OtherName::content) return false;
    const RequiresGrad ours = rank_.target_item(row).requires_grad;
    if (!row.matched()) return python_.surplus_differs && ours != RequiresGrad::unknown;
    const RequiresGrad theirs = rank_.golden_item(row).requires_grad;
    // MindSpore's dumps do not have requires_grad, but within one framework its absence is a difference.
    const bool known = ours != RequiresGrad::unknown && theirs != RequiresGrad::unknown;
    if (python_.null_says_nothing && !known) return false;
    if (!python_.grad_across_frameworks && !known && target().header.framework != golden().header.framework)
      return false;
    return ours != theirs;
  }

  // Rule 5.
  bool scalar_argument(const Pair& row) const {
    if (!row.matched()) return false;
    const Item& item = rank_.target_item(row);
    const Item& bench = rank_.golden_item(row);
    const auto is_class = [](std::string_view dtype) {
      return dtype.find("class") != std::string_view::npos;
    };
    if (!is_class(target().text(item.dtype)) || !is_class(golden().text(bench.dtype))) return false;
    if (target().text(item.shape) != "[]") return false;
    measuring::PythonRules measure = python_;
    if (measure.numbers_only) measure = {};  // texts count here, and 1 equals 1.0
    const measuring::ValueDifference difference = measuring::difference(
        item.statistics[kMax], target().pool, bench.statistics[kMax], golden().pool, measure);
    return difference.kind != measuring::DifferenceKind::zero;
  }

  // Rule 6.
  bool dtype(const Pair& row) const {
    if (row.other_name == OtherName::content) return false;
    if (!row.matched()) return is_surplus(row);
    const Item& bench = rank_.golden_item(row);
    const std::string_view a = target().text(rank_.target_item(row).dtype);
    const std::string_view b = golden().text(bench.dtype);
    if ((python_.fused_dtypes_pass || rank_.consistent) && is_fused(golden().name(bench))) return false;
    if (says_nothing(a) || says_nothing(b)) return false;
    return python_.dtypes_by_spelling ? a != b : !same_dtype(a, b);
  }

  /// True for a dtype or shape that contains no information.
  bool says_nothing(std::string_view text) const { return python_.null_says_nothing && text == "None"; }
  bool is_surplus(const Pair& row) const {
    return python_.surplus_differs && row.has_target() && !row.has_golden() &&
           !says_nothing(target().text(rank_.target_item(row).dtype));
  }

  static bool is_fused(std::string_view name) {
    return name.find("qkv") != std::string_view::npos || name.find("gate_up") != std::string_view::npos;
  }

  // Rule 10: axes of length 1 do not count, and training with megatron has batch and sequence apart.
  bool consistent_shape(const Pair& row) const {
    if (!row.matched()) return false;
    const Item& item = rank_.target_item(row);
    const Item& bench = rank_.golden_item(row);
    if (rank_.consistent == pairing::Backend::fsdp && is_fused(golden().name(bench))) return false;
    std::vector<std::string> npu = axes_of(target().text(item.shape));
    const std::vector<std::string> other = axes_of(golden().text(bench.shape));
    if (rank_.consistent == pairing::Backend::megatron && npu.size() == 3 && other.size() != 3) {
      const auto second = parse_number(npu[1]);
      const auto third = parse_number(npu[2]);
      if (second && third) npu = {npu[0], fmt::format("{:.0f}", *second * *third)};
    }
    return npu != other;
  }

  /// The axes of `[1, 3, 4]` without those of length 1.
  static std::vector<std::string> axes_of(std::string_view shape) {
    std::vector<std::string> axes;
    std::string axis;
    for (const char c : shape) {
      if (c >= '0' && c <= '9') {
        axis += c;
      } else if (c == ',' || c == ']') {
        if (!axis.empty() && axis != "1") axes.push_back(axis);
        axis.clear();
      } else if (c != ' ' && c != '[') {
        return {std::string(shape)};  // several shapes, or none
      }
    }
    return axes;
  }

  // Rule 7.
  bool shape(const Pair& row) const {
    if (rank_.merged_ranks || row.other_name == OtherName::content) return false;
    if (!row.matched()) return is_surplus(row);
    const std::string_view a = target().text(rank_.target_item(row).shape);
    const std::string_view b = golden().text(rank_.golden_item(row).shape);
    return a != b && !says_nothing(a) && !says_nothing(b);
  }

  bool grows(double input, double output) const {
    if (input == 0) return output > rules_.norm_error_from_zero_above;
    if (input == kInfinity) return false;
    return output / input > rules_.norm_error_growth_above;
  }

  // Rule 8.
  void norm_growth() {
    mark_outputs(RowRule::norm_growth,
                 [&](std::size_t i) { return grows(input_norm_error_, aggregated(output_norm_errors_[i])); });
  }

  // Rule 9.
  void cosine_drop() {
    const double input = smallest(inputs_, kCosine);
    if (input <= rules_.cosine_input_above) return;
    mark_outputs(RowRule::cosine_drop, [&](std::size_t i) {
      return input - metric(outputs_[i], kCosine).value_or(1.0) > rules_.cosine_drop_above;
    });
  }

  void checksums(const std::vector<std::size_t>& indices) {
    for (const std::size_t i : indices) {
      if (const std::optional<RowRule> rule = checksum(rank_.rows[i])) out_.findings[i].add(*rule);
    }
  }
  std::optional<RowRule> checksum(const Pair& row) const {
    const Item& item = rank_.target_item(row);
    if (!row.matched()) return RowRule::checksum_missing;
    const Item& bench = rank_.golden_item(row);
    const std::string_view a = target().text(item.checksum);
    const std::string_view b = golden().text(bench.checksum);
    if (!python_.tensors_without_checksum && (item.is_tensor || bench.is_tensor) &&
        (!item.has_checksum || !bench.has_checksum))
      return item.has_checksum == bench.has_checksum ? RowRule::no_checksum : RowRule::checksum_missing;
    // In graphs of the Python tool, null is a value that differs from others.
    const auto absent = [&](std::string_view text) {
      return (text.empty() && !python_.null_says_nothing) || text == "N/A" || text == "Nan";
    };
    if (a == b) return std::nullopt;
    const bool missing = absent(a) || absent(b);
    return missing ? RowRule::checksum_missing : RowRule::checksum;
  }

  const MeasuredRank& rank_;
  const Rules& rules_;
  const measuring::PythonRules& python_;
  Judgement& out_;
  bool consistent_;
  std::vector<std::size_t> inputs_;
  std::vector<std::size_t> outputs_;
  double input_norm_error_ = 0;             // the largest of the current entry
  std::vector<double> output_norm_errors_;  // by output
};

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  static constexpr std::array<std::string_view, 3> kNames = {"pass", "warning", "error"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Judgement marks_of(const MeasuredRank& rank) {
  Judgement judgement;
  judgement.findings.resize(rank.rows.size());
  for (std::size_t i = 0; i < rank.rows.size(); ++i) {
    const Pair& row = rank.rows[i];
    Findings& findings = judgement.findings[i];
    if (row.other_name == OtherName::fuzzy) findings.add(RowRule::fuzzy_pair);
    if (row.other_name == OtherName::aligned) findings.add(RowRule::aligned_pair);
    if (row.other_name == OtherName::content) findings.add(RowRule::content_pair);
    if (row.not_joined) findings.add(RowRule::not_joined);
    if (row.copies_differ) findings.add(RowRule::copies_differ);
    // Rows without a partner have another explanation.
    if (rank.metrics.empty() || rank.python.remarks_pass || !row.matched() || rank.is_left_out(row)) continue;
    const measuring::TensorMetrics& metrics = rank.metrics[i];
    if (metrics.failed) findings.add(RowRule::not_measured);
    if (metrics.messages.size() > (metrics.failed ? 1 : 0)) findings.add(RowRule::remark);
  }
  return judgement;
}

Judgement judge(const MeasuredRank& rank, const Rules& rules) {
  Judgement judgement = marks_of(rank);
  judgement.thresholds = static_cast<const pairing::Thresholds&>(rules);
  judgement.by_xor = rank.mode == Mode::md5 && !rank.python.xors_as_written &&
                     measuring::are_xor(rank.target).value_or(false);
  RowJudge(rank, rules, judgement).run();
  return judgement;
}

}  // namespace msprobe::verdict
