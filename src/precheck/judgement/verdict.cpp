// SPDX-License-Identifier: Apache-2.0
#include "precheck/judgement/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "support/text.hpp"
#include "tensor/float_form.hpp"

namespace msprobe::precheck {
namespace {

constexpr int kShownDigits = 6;

std::string shown(double value) {
  return short_number(value, kShownDigits);
}

bool is_complex_type(tensor::DType dtype) {
  return tensor::info(dtype).kind == tensor::DTypeKind::complex;
}

/// The place of an element; a complex one counts as two.
std::string float_place(std::uint64_t element, const TensorOutput& device) {
  if (!is_complex_type(device.dtype)) return place_of(element, device.shape);
  return place_of(element / 2, device.shape) + (element % 2 == 0 ? " (real part)" : " (imaginary part)");
}

constexpr double kMask = 0x1p64;  // inputs of this size represent infinity

/// The unit in the last place of a type at a number.
double unit_at(tensor::DType dtype, double value) {
  const auto form = tensor::float_form(tensor::real_type(dtype));
  if (!form || value == 0 || !std::isfinite(value)) return 0;
  return std::ldexp(1.0, std::max(std::ilogb(value), form->least) - form->fraction);
}

}  // namespace

std::string place_of(std::uint64_t element, const std::vector<std::uint64_t>& shape) {
  if (shape.empty()) return "the only element";
  std::vector<std::uint64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::uint64_t size = std::max<std::uint64_t>(shape[i], 1);
    index[i] = element % size;
    element /= size;
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

OutputVerdict judge_floats(const FloatFigures& figures, const TensorOutput& device,
                           const Standards& standards, const InputFacts& inputs) {
  const TypeLimits& limits = standards.type(device.dtype);
  if (figures.nonfinite_unequal != 0) {
    return {PrecheckVerdict::error,
            fmt::format(
                "{} of {} elements are NaN or infinite on one side, or differ in sign; the first is {}: {} "
                "instead of {}",
                human_count(figures.nonfinite_unequal), human_count(figures.count),
                float_place(figures.nonfinite_unequal_at, device), shown(figures.nonfinite_device_at),
                shown(figures.nonfinite_reference_at))};
  }
  OutputVerdict opinion;
  const auto largest = [&](std::optional<double> limit) {
    return fmt::format("{} is off by {} units in the last place of {}{}: {} instead of {}",
                       float_place(figures.max_units_at, device), shown(figures.max_units),
                       tensor::info(device.dtype).name, limit ? ", above " + shown(*limit) : std::string(),
                       shown(figures.device_at), shown(figures.reference_at));
  };
  const double wrong_share = static_cast<double>(figures.wrong) / static_cast<double>(figures.count);
  if (figures.max_units > limits.units_error) {
    opinion = {PrecheckVerdict::error, largest(limits.units_error)};
  } else if (wrong_share > standards.limits().wrong_share) {
    opinion = {PrecheckVerdict::error,
               fmt::format("{} of {} elements have no correct digit; {}", human_count(figures.wrong),
                           human_count(figures.count), largest(std::nullopt))};
  } else if (figures.max_units > limits.units_warning) {
    opinion = {PrecheckVerdict::warning, largest(limits.units_warning)};
  }
  // Sums that cancel leave the rounding of their terms. They are computed in float32 at least, so that an
  // error that is large relative to the whole output must be smaller than that rounding. A mask is not a
  // number that anything is added to.
  const bool far_off = figures.max_units > limits.units_error;
  const tensor::DType summed_in =
      far_off && tensor::info(device.dtype).size < tensor::info(tensor::DType::float32).size
          ? tensor::DType::float32
          : device.dtype;
  if (opinion.verdict == PrecheckVerdict::error && inputs.input_scale > 0 && inputs.input_scale < kMask &&
      figures.max_absolute <= limits.units_warning * unit_at(summed_in, inputs.input_scale)) {
    opinion.verdict = PrecheckVerdict::warning;
    opinion.reason += "; no more than rounding of the inputs explains";
  }
  return opinion;
}

OutputVerdict judge_integers(const IntegerFigures& figures, const TensorOutput& device,
                             bool may_differ_by_one) {
  if (figures.unequal == 0) return {};
  const std::string what =
      fmt::format("{} of {} elements differ, by at most {}; the first is {}: {} instead of {}",
                  human_count(figures.unequal), human_count(figures.count), figures.largest,
                  place_of(figures.first_unequal, device.shape), figures.device_at, figures.reference_at);
  if (may_differ_by_one && figures.largest <= 1) return {PrecheckVerdict::pass, what};
  return {PrecheckVerdict::error, what};
}

}  // namespace msprobe::precheck
