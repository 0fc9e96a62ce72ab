// SPDX-License-Identifier: Apache-2.0
// msprobe's judgement of one output: equal NaN and infinities are equal, errors are in units in the last
// place, integers are exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "precheck/judgement/float_figures.hpp"
#include "precheck/judgement/integers.hpp"
#include "precheck/judgement/output.hpp"
#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

struct OutputVerdict {
  PrecheckVerdict verdict = PrecheckVerdict::pass;
  std::string reason;
};

OutputVerdict judge_floats(const FloatFigures& figures, const TensorOutput& device,
                           const Standards& standards, const InputFacts& inputs);
OutputVerdict judge_integers(const IntegerFigures& figures, const TensorOutput& device,
                             bool may_differ_by_one);

/// `[3, 4]` of an element of a shape.
std::string place_of(std::uint64_t element, const std::vector<std::uint64_t>& shape);

}  // namespace msprobe::precheck
