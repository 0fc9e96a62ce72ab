// SPDX-License-Identifier: Apache-2.0
// The criterion that judges an operation's outputs, and its limits: data/precheck/standards.yaml.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tensor/dtype.hpp"

namespace msprobe::precheck {

enum class Criterion : std::uint8_t {
  benchmark,
  absolute_threshold,
  binary_consistency,
  ulp,
  thousandth,
  accumulative_error,
};
inline constexpr std::size_t kCriterionCount = static_cast<std::size_t>(Criterion::accumulative_error) + 1;

/// Ratios of two devices' errors, above which the benchmark criterion says error.
struct RatioLimits {
  double max_relative = 0;
  double mean_relative = 0;
  double rmse = 0;
  double small_share = 0;
  double balance = 0;  // shown only
};

struct TypeLimits {
  double small_value = 0;
  double absolute_tolerance = 0;   // of small values, by the absolute threshold
  double benchmark_tolerance = 0;  // the same by the benchmark criterion
  double relative_tolerance = 0;
  double accumulative_bound = 0;
  double accumulative_balance = 0;
  double smallest_denominator = 0;
  double units_warning = 0;  // msprobe's: largest error in units of the last place
  double units_error = 0;
};

struct OtherLimits {
  double accumulative_small_value = 0;
  double ulp_float32 = 0;  // units above which an element counts
  double ulp_other = 0;
  double ulp_float32_mean = 0;
  double ulp_float32_share = 0;
  double ulp_other_share = 0;
  double ulp_ratio = 0;
  double thousandth = 0;
  // Limits for the status of one output.
  double cosine = 0;
  double max_absolute = 0;
  double hundredth_share = 0;
  double thousandth_share = 0;
  double ten_thousandth_share = 0;
  double dropout_zeros = 0;
  double dropout_elements = 0;
  double quantized = 0;
  double wrong_share = 0;  // msprobe's: share of elements without a correct digit
};

class Standards {
 public:
  static Standards built_in();
  /// The built-in standards, with the values of the file in their place. IoError, FormatError naming file and
  /// line.
  static Standards load(const std::string& path);

  /// The criterion of the first list that holds the operation; `benchmark` if no list does.
  Criterion listed(std::string_view operation) const;
  /// The limits of release 26; release 8 has level 0 only.
  const RatioLimits& ratios(std::string_view operation) const;
  const RatioLimits& ratios() const { return ratios_[0]; }
  bool may_differ_by_one(std::string_view operation) const { return quantized_.contains(operation); }
  /// The limits of a type, by its name without "torch.".
  const TypeLimits& type(std::string_view name) const;
  const TypeLimits& type(tensor::DType dtype) const { return type(tensor::info(dtype).name); }
  const OtherLimits& limits() const { return limits_; }

 private:
  friend class StandardsReader;
  using Names = std::set<std::string, std::less<>>;

  std::array<Names, kCriterionCount> lists_;
  std::array<Names, 3> levels_;
  std::array<RatioLimits, 3> ratios_;
  Names quantized_;
  std::map<std::string, TypeLimits, std::less<>> types_;
  OtherLimits limits_;
};

}  // namespace msprobe::precheck
