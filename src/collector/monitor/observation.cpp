// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/observation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace msprobe::collector::monitor {

using series::Statistic;

namespace {

Cell real_cell(double value) {
  Cell cell;
  cell.kind = Cell::Kind::real;
  cell.real = value;
  return cell;
}

Cell integer_cell(std::int64_t value) {
  Cell cell = real_cell(static_cast<double>(value));
  cell.kind = Cell::Kind::integer;
  cell.integer = value;
  return cell;
}

Cell text_cell(std::string text) {
  Cell cell;
  cell.kind = Cell::Kind::text;
  cell.text = std::move(text);
  return cell;
}

Cell extremum(Extrema extrema, double real, std::int64_t integer) {
  Cell cell = real_cell(real);
  cell.integer = integer;
  switch (extrema) {
    case Extrema::none:
      return {};
    case Extrema::real:
      break;
    case Extrema::integer:
      cell.kind = Cell::Kind::integer;
      break;
    case Extrema::natural:
      cell.kind = Cell::Kind::natural;
      break;
    case Extrema::boolean:
      cell.kind = Cell::Kind::boolean;
      break;
  }
  return cell;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t length : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(length);
  }
  return text + "]";
}

}  // namespace

Extrema extrema_of(tensor::DType dtype) {
  using tensor::DType;
  switch (tensor::info(dtype).kind) {
    case tensor::Kind::boolean:
      return Extrema::boolean;
    case tensor::Kind::integer:
      return dtype == DType::uint64 ? Extrema::natural : Extrema::integer;
    case tensor::Kind::complex:
      return Extrema::none;
    case tensor::Kind::floating:
      break;
  }
  // PyTorch cannot compare 8-bit floats.
  return tensor::info(dtype).size == 1 ? Extrema::none : Extrema::real;
}

Cell Observation::cell(Statistic statistic) const {
  if (statistic == Statistic::shape || statistic == Statistic::dtype) {
    if (held != Held::tensor || folded > 1 || dtype.empty()) return {};
    return text_cell(statistic == Statistic::dtype ? dtype : shape_text(shape));
  }
  if (held != Held::tensor) return {};
  const bool empty = measured.count == 0;
  switch (statistic) {
    case Statistic::norm:
      return real_cell(empty ? 0 : measured.norm);
    case Statistic::nans:
      return integer_cell(static_cast<std::int64_t>(measured.nan));
    case Statistic::mean:
      return empty ? Cell{} : real_cell(measured.mean / folded);
    case Statistic::zeros:
      return empty || !has_zeros ? Cell{} : real_cell(zeros / folded);
    case Statistic::min:
      return empty ? Cell{} : extremum(extrema, measured.min, measured.integer_min);
    case Statistic::id:
      if (!shape.empty() || folded > 1) return {};
      [[fallthrough]];
    default:
      return empty ? Cell{} : extremum(extrema, measured.max, measured.integer_max);
  }
}

void Observation::fold(const Observation& other) {
  if (other.held != Held::tensor) return;
  if (held != Held::tensor) {
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
  result.held = Observation::Held::tensor;
  result.extrema = extrema_of(view.dtype);
  result.shape.assign(view.shape.begin(), view.shape.begin() + view.rank);
  result.dtype = std::move(dtype);
  if (view.count == 0) return result;
  result.measured = measure_real(view, eps);
  // Frameworks have no magnitude of a boolean, and cannot compare 8-bit floats.
  result.has_zeros =
      eps && result.extrema != Extrema::boolean &&
      (result.extrema != Extrema::none || tensor::info(view.dtype).kind == tensor::Kind::complex);
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
