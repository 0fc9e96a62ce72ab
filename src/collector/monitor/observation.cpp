// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/observation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace msprobe::collector::monitor {

using series::MonitorStatistic;

namespace {

ObservedCell real_cell(double value) {
  ObservedCell cell;
  cell.kind = ObservedCell::ObservedType::real;
  cell.real = value;
  return cell;
}

ObservedCell integer_cell(std::int64_t value) {
  ObservedCell cell = real_cell(static_cast<double>(value));
  cell.kind = ObservedCell::ObservedType::integer;
  cell.integer = value;
  return cell;
}

ObservedCell text_cell(std::string text) {
  ObservedCell cell;
  cell.kind = ObservedCell::ObservedType::text;
  cell.text = std::move(text);
  return cell;
}

ObservedCell extremum(Extrema extrema, double real, std::int64_t integer) {
  ObservedCell cell = real_cell(real);
  cell.integer = integer;
  switch (extrema) {
    case Extrema::none:
      return {};
    case Extrema::real:
      break;
    case Extrema::integer:
      cell.kind = ObservedCell::ObservedType::integer;
      break;
    case Extrema::natural:
      cell.kind = ObservedCell::ObservedType::natural;
      break;
    case Extrema::boolean:
      cell.kind = ObservedCell::ObservedType::boolean;
      break;
  }
  return cell;
}

}  // namespace

Extrema extrema_of(tensor::DType dtype) {
  using tensor::DType;
  switch (tensor::info(dtype).kind) {
    case tensor::DTypeKind::boolean:
      return Extrema::boolean;
    case tensor::DTypeKind::integer:
      return dtype == DType::uint64 ? Extrema::natural : Extrema::integer;
    case tensor::DTypeKind::complex:
      return Extrema::none;
    case tensor::DTypeKind::floating:
      break;
  }
  // PyTorch cannot compare 8-bit floats.
  return tensor::info(dtype).size == 1 ? Extrema::none : Extrema::real;
}

ObservedCell Observation::cell(MonitorStatistic statistic) const {
  if (statistic == MonitorStatistic::shape || statistic == MonitorStatistic::dtype) {
    if (held != HeldValue::tensor || folded > 1 || dtype.empty()) return {};
    return text_cell(statistic == MonitorStatistic::dtype ? dtype
                                                          : fmt::format("[{}]", fmt::join(shape, ", ")));
  }
  if (held != HeldValue::tensor) return {};
  const bool empty = measured.count == 0;
  switch (statistic) {
    case MonitorStatistic::norm:
      return real_cell(empty ? 0 : measured.norm);
    case MonitorStatistic::nans:
      return integer_cell(static_cast<std::int64_t>(measured.nan));
    case MonitorStatistic::mean:
      return empty ? ObservedCell{} : real_cell(measured.mean / folded);
    case MonitorStatistic::zeros:
      return empty || !has_zeros ? ObservedCell{} : real_cell(zeros / folded);
    case MonitorStatistic::min:
      return empty ? ObservedCell{} : extremum(extrema, measured.min, measured.integer_min);
    case MonitorStatistic::id:
      if (!shape.empty() || folded > 1) return {};
      [[fallthrough]];
    default:
      return empty ? ObservedCell{} : extremum(extrema, measured.max, measured.integer_max);
  }
}

void Observation::fold(const Observation& other) {
  if (other.held != HeldValue::tensor) return;
  if (held != HeldValue::tensor) {
    const std::uint32_t place = call;
    *this = other;
    call = place;
    return;
  }
  if (other.measured.count > 0 && measured.count > 0) {
    if (extrema != other.extrema) extrema = Extrema::real;
    // A NaN stays NaN.
    if (!(measured.max >= other.measured.max) && !std::isnan(measured.max)) measured.max = other.measured.max;
    if (!(measured.min <= other.measured.min) && !std::isnan(measured.min)) measured.min = other.measured.min;
    measured.integer_max = std::max(measured.integer_max, other.measured.integer_max);
    measured.integer_min = std::min(measured.integer_min, other.measured.integer_min);
  }
  measured.count += other.measured.count;
  measured.norm += other.measured.norm;
  measured.nan += other.measured.nan;
  measured.mean += other.measured.mean;
  zeros += other.zeros;
  has_zeros = has_zeros && other.has_zeros;
  ++folded;
}

Observation observe_view(const TensorView& view, std::optional<double> eps, std::string dtype) {
  Observation result;
  result.held = Observation::HeldValue::tensor;
  result.extrema = extrema_of(view.dtype);
  result.shape = view.lengths();
  result.dtype = std::move(dtype);
  if (view.count == 0) return result;
  result.measured = measure_real(view, eps);
  // Frameworks have no magnitude of a boolean, and cannot compare 8-bit floats.
  result.has_zeros =
      eps && result.extrema != Extrema::boolean &&
      (result.extrema != Extrema::none || tensor::info(view.dtype).kind == tensor::DTypeKind::complex);
  result.zeros = static_cast<float>(result.measured.below) / static_cast<float>(view.count);
  return result;
}

Observation observe_number(double value, std::optional<double> eps, std::string dtype) {
  TensorView view;
  view.data = reinterpret_cast<const std::byte*>(&value);
  view.dtype = tensor::DType::float64;
  view.count = 1;
  return observe_view(view, eps, std::move(dtype));
}

}  // namespace msprobe::collector::monitor
