// SPDX-License-Identifier: Apache-2.0
// The values of a series in one step, and the cells of its row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/measure.hpp"
#include "series/quantities.hpp"

namespace msprobe::collector::monitor {

/// How extrema of an element type are written; `none`: the type has no order, or frameworks give no extrema.
enum class Extrema : std::uint8_t { real, integer, natural, boolean, none };

struct ObservedCell {
  enum class ObservedType : std::uint8_t { absent, real, integer, natural, boolean, text };
  ObservedType kind = ObservedType::absent;
  double real = 0;           // of every number
  std::int64_t integer = 0;  // exact; for natural numbers the same 64 bits
  std::string text;

  bool is_number() const { return kind != ObservedType::absent && kind != ObservedType::text; }
};

struct Observation {
  enum class HeldValue : std::uint8_t { absent, tensor, values };
  HeldValue held = HeldValue::absent;
  Extrema extrema = Extrema::none;
  bool has_zeros = false;
  std::uint32_t folded = 1;  // the number of observations that were folded into this one
  std::uint32_t call = 0;    // its place among the first observations of the step
  Measured measured;
  double zeros = 0;  // share of elements below eps, as the float that frameworks make of it
  std::vector<std::int64_t> shape;
  std::string dtype;  // "torch.float32"
  std::vector<double> values;

  ObservedCell cell(series::MonitorStatistic statistic) const;
  /// Adds another call of the same operation.
  void fold(const Observation& other);
};

/// Observes elements on the host. Without `eps`, the observation has no zeros.
Observation observe_view(const TensorView& view, std::optional<double> eps, std::string dtype);
/// Observes a single number as a tensor without axes.
Observation observe_number(double value, std::optional<double> eps, std::string dtype);

Extrema extrema_of(tensor::DType dtype);

}  // namespace msprobe::collector::monitor
