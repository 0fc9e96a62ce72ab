// SPDX-License-Identifier: Apache-2.0
// Compares two recordings of task grad_probe: how many elements of each gradient have the same sign in both,
// step by step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/coverage.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::grad_compare {

/// Counts of elements of a gradient, or of all gradients of a step.
struct EqualShare {
  std::uint64_t equal = 0;
  std::uint64_t total = 0;
  /// From 0 to 1; 0 without elements, as in the Python tool.
  double value() const { return total == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(total); }
};

/// One rank that both sides have.
struct RankSimilarity {
  std::uint64_t rank = 0;
  std::vector<std::uint64_t> steps;     // ascending
  std::vector<std::string> parameters;  // in the order of the summaries
  std::vector<std::vector<std::optional<EqualShare>>>
      shares;                       // [parameter][step]; nothing: could not be compared
  std::vector<EqualShare> summary;  // of all parameters of a step
};

/// A step that the rule of thumb suspects: signs agree less than they should at the first step, or suddenly
/// less than one step before.
struct SuspectStep {
  std::uint64_t rank = 0;
  std::uint64_t step = 0;
  double similarity = 0;
  std::optional<double> before;  // one step earlier; nothing: at the first step
  std::string parameter;         // the parameter that agrees least there
  double least = 0;
};

/// A step is suspect if the similarity sinks below kLeast (or is below it at the first step), and if it falls
/// by more than kLargestFall from one step to the next. The manual of the Python tool 8.1 (gradient probe)
/// checks kLeast only at the first step, and so overlooks a slow decline.
inline constexpr double kLeast = 0.97;
inline constexpr double kLargestFall = 0.03;

struct Similarity {
  std::vector<RankSimilarity> ranks;  // ascending
  std::vector<SuspectStep> suspects;  // in the order of ranks and steps
  std::vector<std::string> gaps;      // what was not compared, one line each
};

/// The coverage of the gradients, step by step; gaps are reported in separate lines.
Coverage coverage_of(const Similarity& similarity);

/// True if all signs that were compared are equal.
bool all_equal(const Similarity& similarity);

/// `first` and `second` hold folders rank<R>. Throws IoError or FormatError if nothing at all can be
/// compared.
Similarity compare_signs(const std::string& first, const std::string& second, Progress* progress);

/// "rank 0, step 2: 0.667 of all signs are equal, 0.833 one step before; 0.weight agrees least: 0.5"
std::string sentence(const SuspectStep& suspect);

/// One line about the whole comparison.
std::string headline(const Similarity& similarity);

/// similarities.html: the similarity over the steps, and where in the model it is lost. The page has no
/// script and loads nothing. Its size is bounded: if there are too many steps, neighbours share a column with
/// their least similarity, and only the parameters that agree least are drawn; the page says so.
std::string render_page(const Similarity& similarity, const std::string& first, const std::string& second);

}  // namespace msprobe::grad_compare
