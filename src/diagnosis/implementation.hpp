// SPDX-License-Identifier: Apache-2.0
// One of two implementations of a model: the flow of its forward, and the names of its calls and contents in
// sentences.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/content_flow.hpp"
#include "diagnosis/meeting_points.hpp"
#include "dump/construct_json.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

class Implementation {
 public:
  /// `of` outlives it; `joins` and `beside` may be null.
  Implementation(const dump::Side& of, const pairing::Joins* joins,
                 const std::shared_ptr<const dump::ConstructBeside>& beside);

  std::string module(std::uint32_t call) const;
  /// Contents that recorded calls made, in the order of their entries.
  std::vector<std::uint32_t> made() const;
  /// The last call with an entry, or kNone.
  std::uint32_t last_recorded() const;
  /// The entry that makes a content, or the place where it is taken from unrecorded code.
  std::string name(std::uint32_t content) const;
  /// The first of `calls` in the module of the last one, because tables and masks may come before it in other
  /// modules; else the first of all. If `calls` is empty, the first recorded call that takes the content.
  std::uint32_t first_of(const std::vector<std::uint32_t>& calls, std::uint32_t content) const;
  /// The number of elements and the norm of the gradients of all recorded parameters, each content once.
  std::pair<std::uint64_t, double> gradients() const;
  /// `Tensor.add, Functional.gelu and 3 more`.
  std::string operations(const std::vector<std::uint32_t>& calls) const;
  std::vector<std::string> names(const std::vector<std::uint32_t>& calls) const;
  /// The largest unit roundoff of the run: results that are computed from half types have their rounding,
  /// whatever their own type.
  double coarsest() const;

  const dump::Side& side;

 private:
  const dump::ConstructTable* construct_;  // may be null

 public:
  const ContentFlow flow;  // of the forward
};

/// How far the same tensor of two implementations may be apart. `u`: the largest unit roundoff of both;
/// `drift`: the error that rounding grew to in the updates before these steps.
Allowance allowance_of(double u, double drift);

}  // namespace msprobe::diagnosis
