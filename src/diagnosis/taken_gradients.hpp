// SPDX-License-Identifier: Apache-2.0
// The gradients of parameters, as the backward gave them and as the optimizer takes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnosis/item_errors.hpp"
#include "diagnosis/walk.hpp"
#include "dump/side.hpp"
#include "dump/training.hpp"

namespace msprobe::diagnosis {

struct TakenGradient {
  std::string parameter;
  std::uint32_t item = 0;  // of the target
  double target = 0;       // the norm that the optimizer takes, divided by the norm that the backward gave
  double golden = 0;
  double taken = 0;  // the norm that is taken
  double golden_taken = 0;
};

/// The gradients in the order of the dump; a gradient that accumulates is listed each time that it is
/// recorded. Nothing where a side has no optimizer step or several. `golden_item`: by item of the target, or
/// kNone.
std::vector<TakenGradient> taken_gradients(const dump::Side& target, const dump::Side& golden,
                                           const std::vector<std::uint32_t>& golden_item);

/// The same by parameter, in two parts: those of which the code between backward and optimizer leaves another
/// part than golden's does, and the others. Gradients that are nothing but noise are in neither.
struct GradientChanges {
  std::map<std::string, TakenGradient> changed;
  std::set<std::string> same;
};
GradientChanges changes_of(const std::vector<TakenGradient>& gradients, const ItemErrors& errors,
                           double threshold);

/// The norms that an optimizer takes, by parameter, as far as they are known.
std::map<std::string, double> taken_norms(const dump::OptimizerSettings& optimizer);

/// The same of both sides; nothing where a side has no optimizer step or several.
using TakenNorms = std::pair<std::map<std::string, double>, std::map<std::string, double>>;
std::optional<TakenNorms> taken_norms(const dump::Side& target, const dump::Side& golden);

/// The parameters whose gradients have the same norms on both sides in all steps that optimizers make.
std::set<std::string> taken_alike(const dump::Side& target, const dump::Side& golden);

/// Describes an input that is the gradient of a parameter after more or fewer backward passes of the step
/// than golden's; empty if it is not.
std::string of_other_pass(const Walk& walk, std::uint32_t item);

/// The tensors that optimizers take as gradients, as far as their calls are recorded.
class TakenTensors {
 public:
  explicit TakenTensors(const dump::Side& side);
  /// The mean of the gradient of a parameter as its optimizer takes it, after reductions and clipping.
  /// Without its tensor, the mean that the backward gave, changed as the norm is. NaN: not known.
  double mean_of(const std::string& parameter, const dump::Item& given) const;
  /// The first tensor of this norm, of any shape if `shape` is empty, or kNone.
  std::uint32_t of_norm(double norm, std::string_view shape = {}) const;

 private:
  const dump::Side& side_;
  std::map<std::string, double> norms_;         // by parameter
  std::multimap<double, std::uint32_t> items_;  // by norm: inputs of the calls after the last backward
};

/// The largest difference of the norms that the optimizers of both sides take; infinite where they take
/// gradients of other parameters, or where a side makes no step, or several that take the gradient of one
/// parameter. A gradient that is small beside the largest may cancel, so that its error counts less.
double difference_of_taken(const dump::Side& target, const dump::Side& golden);

/// The same of the parameters that are in no recorded module, by norm and, where calls of the optimizers are
/// recorded, by mean; 0 if both sides have none.
double difference_of_unnamed(const dump::Side& target, const dump::Side& golden);

/// The coarsest type of what the calls make of a parameter, by its number of elements. Under automatic
/// casting its gradient was rounded to that type, whatever type it has when the optimizer takes it.
std::unordered_map<std::uint64_t, double> types_of_users(const dump::Side& target, const dump::Side& golden);

}  // namespace msprobe::diagnosis
