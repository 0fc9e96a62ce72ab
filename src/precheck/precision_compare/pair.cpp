// SPDX-License-Identifier: Apache-2.0
#include "precheck/precision_compare/pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr int kReasonDigits = 6;

bool is_float8(std::string_view dtype) {
  return dtype.find("float8") != std::string_view::npos || dtype.find("HiFloat8") != std::string_view::npos;
}

bool is_benchmark_type(std::string_view dtype) {
  return dtype == "torch.float16" || dtype == "torch.bfloat16" || dtype == "torch.float32";
}

std::string_view without_torch(std::string_view dtype) {
  constexpr std::string_view kPrefix = "torch.";
  return dtype.starts_with(kPrefix) ? dtype.substr(kPrefix.size()) : dtype;
}

bool are_alike(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

/// A measure of the benchmark criterion: a figure of both sides, and the limit of their ratio.
struct RatioMeasure {
  PrecisionMeasure measure;
  Figure figure;
  double RatioLimits::*limit;
  const char* error;  // of the Python tool; null: shown only
};
constexpr RatioMeasure kRatios[] = {
    {PrecisionMeasure::small_share, Figure::small_share, &RatioLimits::small_share, "小值域错误比值"},
    {PrecisionMeasure::rmse, Figure::rmse, &RatioLimits::rmse, "均方根误差比值"},
    {PrecisionMeasure::max_relative, Figure::max_relative, &RatioLimits::max_relative, "相对误差最大值比值"},
    {PrecisionMeasure::mean_relative, Figure::mean_relative, &RatioLimits::mean_relative,
     "相对误差平均值比值"},
    {PrecisionMeasure::balance, Figure::balance, &RatioLimits::balance, nullptr},
};

/// Rates that must be 0.
struct Rate {
  PrecisionMeasure measure;
  Figure figure;
};
constexpr Rate kRates[] = {
    {PrecisionMeasure::inf_nan_rate, Figure::inf_nan_rate},
    {PrecisionMeasure::relative_rate, Figure::relative_rate},
    {PrecisionMeasure::absolute_rate, Figure::absolute_rate},
};

class PairJudge {
 public:
  PairJudge(const OutputName& name, const DetailsRow& device, const DetailsRow& other,
            const Standards& standards, std::optional<Selection> selection)
      : operation_(name.operation),
        device_(device),
        other_(other),
        standards_(standards),
        selection_(selection),
        type_(standards.type(without_torch(device.dtype))) {}

  PairRow judge() {
    const std::vector<Criterion> criteria = chosen();
    if (criteria.empty()) skip("no column needed by a criterion is filled");
    for (const Criterion criterion : criteria) {
      judge(criterion);
      row_.algorithm += (row_.algorithm.empty() ? "" : " + ") + std::string(algorithm(criterion));
    }
    return std::move(row_);
  }

 private:
  static std::string_view algorithm(Criterion criterion) {
    constexpr std::string_view kNames[] = {"标杆比对法",    "绝对阈值法", "二进制一致法",
                                           "ULP误差比对法", "双千指标法", "累积误差比对法"};
    return kNames[static_cast<std::size_t>(criterion)];
  }

  bool filled(std::initializer_list<Figure> figures) const {
    return std::ranges::all_of(
        figures, [&](Figure figure) { return device_[figure].kind != FigureField::FieldKind::blank; });
  }

  std::vector<Criterion> chosen() const {
    const Criterion listed = standards_.listed(operation_);
    if (selection_ == Selection::release_26) {
      if (is_float8(device_.dtype)) return {Criterion::ulp};
      if (filled({Figure::relative_rate})) return {Criterion::absolute_threshold};
      return {is_benchmark_type(device_.dtype) ? Criterion::benchmark : Criterion::binary_consistency};
    }
    if (selection_ == Selection::release_8)
      return {is_benchmark_type(device_.dtype) ? listed : Criterion::binary_consistency};
    return chosen_by_columns(listed);
  }

  /// The criteria whose columns are filled. acc_check fills the columns of one criterion; a table from
  /// elsewhere may have more, and all of them count.
  std::vector<Criterion> chosen_by_columns(Criterion listed) const {
    std::vector<Criterion> criteria;
    if (filled({Figure::rmse}) || filled({Figure::small_share}) || filled({Figure::max_relative}) ||
        filled({Figure::mean_relative}))
      criteria.push_back(Criterion::benchmark);
    if (filled({Figure::inf_nan_rate}) || filled({Figure::relative_rate}) ||
        filled({Figure::absolute_rate})) {
      criteria.push_back(criteria.empty() && filled({Figure::balance}) ? Criterion::accumulative_error
                                                                       : Criterion::absolute_threshold);
    }
    if (filled({Figure::binary})) criteria.push_back(Criterion::binary_consistency);
    if (filled({Figure::mean_ulp}) || filled({Figure::ulp_share})) criteria.push_back(Criterion::ulp);
    // The status of every output uses this share too, so that it is filled whatever the criterion is.
    if (criteria.empty() && listed == Criterion::thousandth && filled({Figure::thousandth}))
      criteria.push_back(Criterion::thousandth);
    return criteria;
  }

  void judge(Criterion criterion) {
    switch (criterion) {
      case Criterion::benchmark:
        return judge_benchmark();
      case Criterion::absolute_threshold:
        return judge_rates(false);
      case Criterion::binary_consistency:
        return judge_binary();
      case Criterion::ulp:
        return judge_ulp();
      case Criterion::thousandth:
        return judge_thousandth();
      case Criterion::accumulative_error:
        return judge_rates(true);
    }
  }

  // The result of the row.

  void worsen(PythonStatus status) {
    const auto rank = [](PythonStatus each) {
      return each == PythonStatus::error ? 2 : each == PythonStatus::skip ? 1 : 0;
    };
    if (row_.status == PythonStatus::none || rank(status) > rank(row_.status)) row_.status = status;
  }
  void note(const std::string& reason) { row_.reason += (row_.reason.empty() ? "" : "; ") + reason; }
  PythonStatus skip(const std::string& reason) {
    note(reason);
    worsen(PythonStatus::skip);
    return PythonStatus::skip;
  }

  // Figures.

  /// The number of a figure. If the row has none, notes that and returns nothing.
  std::optional<double> number(const DetailsRow& row, Figure figure) {
    const FigureField& field = row[figure];
    using Kind = FigureField::FieldKind;
    const char* const fault = field.kind == Kind::blank  ? "blank"
                              : field.kind == Kind::text ? "not a number"
                              : field.value < 0          ? "negative"
                                                         : nullptr;
    if (fault == nullptr) return field.value;
    skip(fmt::format("{}{} is {}", english_column_of(figure), &row == &device_ ? "" : " of the other device",
                     fault));
    return std::nullopt;
  }

  /// The status that NaN and Inf of a figure give: `pass` if both are finite.
  PythonStatus nonfinite(Figure figure, double device, double other) {
    if (std::isfinite(device) && std::isfinite(other)) return PythonStatus::pass;
    const std::string column(column_of(figure));
    if (!are_alike(device, other)) {
      row_.message += column + "inf或nan不一致\n";
      note(fmt::format("{} is {}, but {} on the other device", english_column_of(figure),
                       short_number(device, kReasonDigits), short_number(other, kReasonDigits)));
      return PythonStatus::error;
    }
    row_.message += column + "同为同号inf或nan\n";
    return skip(fmt::format("{} is {} on both devices", english_column_of(figure),
                            short_number(device, kReasonDigits)));
  }

  double ratio_of(double device, double other) const {
    if (!std::isfinite(device) || !std::isfinite(other)) return std::nan("");
    return std::fabs(device) / std::max(std::fabs(other), type_.smallest_denominator);
  }

  // Criteria.

  void judge_benchmark() {
    const RatioLimits& limits =
        selection_ == Selection::release_8 ? standards_.ratios() : standards_.ratios(operation_);
    std::string errors;
    for (const RatioMeasure& each : kRatios) {
      const auto device = number(device_, each.figure);
      const auto other = number(other_, each.figure);
      if (!device || !other) continue;
      Judged& judged = row_[each.measure];
      judged.value = ratio_of(*device, *other);
      const double limit = limits.*each.limit;
      judged.status = nonfinite(each.figure, *device, *other);
      const bool is_nonfinite = judged.status != PythonStatus::pass;
      if (*judged.value > limit) {
        judged.status = PythonStatus::error;
        if (each.error != nullptr) {
          note(fmt::format("{} {} is {} times that of the other device, {}; limit {}",
                           english_column_of(each.figure), short_number(*device, kReasonDigits),
                           short_number(*judged.value, kReasonDigits), short_number(*other, kReasonDigits),
                           short_number(limit, kReasonDigits)));
        }
      }
      const bool decides = each.error != nullptr || is_nonfinite;
      worsen(decides ? judged.status : PythonStatus::pass);
      if (judged.status == PythonStatus::error && each.error != nullptr)
        errors += std::string("ERROR: ") + each.error + "超过阈值\n";
    }
    row_.message += errors;
  }

  /// Judges a rate of the device, which must be 0.
  PythonStatus judge_rate(PrecisionMeasure measure, Figure figure) {
    const auto rate = number(device_, figure);
    if (!rate) return PythonStatus::skip;
    Judged& judged = row_[measure];
    judged = {*rate, *rate == 0 ? PythonStatus::pass : PythonStatus::error};
    worsen(judged.status);
    if (judged.status == PythonStatus::error)
      note(fmt::format("{} is {}", english_column_of(figure), short_number(*rate, kReasonDigits)));
    return judged.status;
  }

  void judge_rates(bool accumulative) {
    std::vector<std::string> errors;
    for (const Rate& each : kRates) {
      if (judge_rate(each.measure, each.figure) == PythonStatus::error)
        errors.push_back("ERROR: " + std::string(column_of(each.figure)) + "超过阈值");
    }
    if (!accumulative) {
      for (const std::string& error : errors) row_.message += error;
      return;
    }
    if (const auto balance = number(device_, Figure::balance)) {
      Judged& judged = row_[PrecisionMeasure::balance];
      judged = {*balance, *balance <= type_.accumulative_balance ? PythonStatus::pass : PythonStatus::error};
      worsen(judged.status);
      if (judged.status == PythonStatus::error) {
        errors.emplace_back("ERROR: 误差均衡性超过阈值");
        note(fmt::format("{} {} is above {}", english_column_of(Figure::balance),
                         short_number(*balance, kReasonDigits),
                         short_number(type_.accumulative_balance, kReasonDigits)));
      }
    }
    for (const std::string& error : errors)
      row_.message += (&error == &errors.front() ? "" : "\n") + error + "\n";
  }

  void judge_binary() {
    if (judge_rate(PrecisionMeasure::binary, Figure::binary) == PythonStatus::error)
      row_.message += "ERROR: 二进制一致错误率超过阈值\n";
  }

  void judge_thousandth() {
    const auto share = number(device_, Figure::thousandth);
    if (!share) return;
    const double least = standards_.limits().thousandth;
    row_.thousandth = {*share, *share >= least ? PythonStatus::pass : PythonStatus::error};
    worsen(row_.thousandth.status);
    if (row_.thousandth.status == PythonStatus::error) {
      row_.message += "ERROR: 双千指标不达标\n";
      note(fmt::format("only {} of the elements are within 0.1 %", short_number(*share, kReasonDigits)));
    }
  }

  void judge_ulp() {
    const OtherLimits& limits = standards_.limits();
    PythonStatus status = PythonStatus::pass;
    if (is_float8(device_.dtype)) {
      row_.ulp_share = number(device_, Figure::ulp_share);
      if (!row_.ulp_share) return;
      row_.ulp = status = *row_.ulp_share < limits.ulp_other_share ? PythonStatus::pass : PythonStatus::error;
    } else {
      const auto mean = number(device_, Figure::mean_ulp);
      const auto other_mean = number(other_, Figure::mean_ulp);
      const auto share = number(device_, Figure::ulp_share);
      const auto other_share = number(other_, Figure::ulp_share);
      row_.mean_ulp = mean;
      row_.ulp_share = share;
      if (!mean || !other_mean || !share || !other_share) return;
      row_.ulp_ratio = ratio_of(*share, *other_share);
      const PythonStatus nonfinite_mean = nonfinite(Figure::mean_ulp, *mean, *other_mean);
      const PythonStatus nonfinite_share = nonfinite(Figure::ulp_share, *share, *other_share);
      if (nonfinite_mean == PythonStatus::error || nonfinite_share == PythonStatus::error) {
        status = PythonStatus::error;
      } else if (nonfinite_mean == PythonStatus::pass && nonfinite_share == PythonStatus::pass) {
        const bool good = device_.dtype == "torch.float32"
                              ? *mean < limits.ulp_float32_mean || *share < limits.ulp_float32_share ||
                                    *row_.ulp_ratio < limits.ulp_ratio
                              : *share < limits.ulp_other_share || *row_.ulp_ratio < limits.ulp_ratio;
        row_.ulp = status = good ? PythonStatus::pass : PythonStatus::error;
      } else {
        row_.ulp = status = PythonStatus::skip;
      }
    }
    worsen(status);
    if (status != PythonStatus::error) return;
    row_.message += "ERROR: ULP误差不满足标准\n";
    if (row_.ulp != PythonStatus::error) return;  // told above
    note(fmt::format("{} of the elements are off by more than {} units in the last place",
                     short_number(*row_.ulp_share, kReasonDigits),
                     short_number(device_.dtype == "torch.float32" ? limits.ulp_float32 : limits.ulp_other,
                                  kReasonDigits)));
  }

  std::string_view operation_;
  const DetailsRow& device_;
  const DetailsRow& other_;
  const Standards& standards_;
  std::optional<Selection> selection_;
  const TypeLimits& type_;
  PairRow row_;
};

}  // namespace

std::optional<OutputName> parse_output_name(std::string_view name) {
  std::vector<std::size_t> dots;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '.') dots.push_back(i);
  }
  // Type . operation . number . direction . output . number; an operation may be of several parts.
  if (dots.size() < 5) return std::nullopt;
  const std::size_t before_direction = dots[dots.size() - 3];
  const std::size_t behind_direction = dots[dots.size() - 2];
  const std::size_t before_number = dots[dots.size() - 4];
  OutputName parsed;
  parsed.api = name.substr(0, before_direction);
  parsed.operation = name.substr(dots.front() + 1, before_number - dots.front() - 1);
  const std::string_view direction =
      name.substr(before_direction + 1, behind_direction - before_direction - 1);
  if (direction == "forward") return parsed;
  if (direction != "backward") return std::nullopt;
  parsed.direction = CallDirection::backward;
  return parsed;
}

bool is_unjudged_type(std::string_view dtype) {
  return dtype == "torch.float64" || dtype == "torch.complex64" || dtype == "torch.complex128";
}

PairRow judge_pair(const OutputName& name, const DetailsRow& device, const DetailsRow& other,
                   const Standards& standards, std::optional<Selection> selection) {
  PairRow row = PairJudge(name, device, other, standards, selection).judge();
  row.name = device.name;
  return row;
}

}  // namespace msprobe::precheck
