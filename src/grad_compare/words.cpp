// SPDX-License-Identifier: Apache-2.0
#include "grad_compare/words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "support/text.hpp"

namespace msprobe::grad_compare {
namespace {

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", human_count(count), count == 1 ? one : many);
}

}  // namespace

std::string sentence(const SuspectStep& suspect) {
  std::string text = fmt::format("rank {}, step {}: {} of all signs are equal, {}; ", suspect.rank,
                                 suspect.step, short_number(suspect.similarity, 4),
                                 suspect.before ? short_number(*suspect.before, 4) + " one step before"
                                                : fmt::format("below {} at the first step", kLeast));
  return text +
         fmt::format("{} agrees least: {}", display(suspect.parameter), short_number(suspect.least, 4));
}

std::string headline(const Similarity& similarity) {
  std::size_t steps = 0;
  for (const RankSimilarity& rank : similarity.ranks) steps = std::max(steps, rank.steps.size());
  const std::string what =
      fmt::format("gradient signs of {} over {}", counted(similarity.ranks.size(), "rank", "ranks"),
                  counted(steps, "step", "steps"));
  const bool whole = similarity.gaps.empty();
  std::string outcome = "no step is suspect";
  if (!similarity.suspects.empty())
    outcome = counted(similarity.suspects.size(), "step is suspect", "steps are suspect");
  else if (all_equal(similarity))
    outcome = whole ? "all are equal" : "all that were compared are equal";
  if (!whole) outcome += ", but not all could be compared";
  return what + ": " + outcome;
}

}  // namespace msprobe::grad_compare
