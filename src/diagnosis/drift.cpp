// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/drift.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "diagnosis/sentences.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

/// The error of a tensor before the walk reaches it; where tensors are read one by one, as far as statistics
/// show it.
double foreseen(const Walk& walk, std::uint32_t item, std::uint32_t golden) {
  if (!walk.options.first) return walk.errors.e[item];
  const measuring::Measure found = walk.errors.by_statistics_of(item, golden);
  return found.known ? found.e : NAN;
}

/// The gradients after the step show which parameters noise moved before it.
void foresee_gradients(Walk& walk) {
  std::vector<double> errors;
  for (std::uint32_t api = 0; api < walk.target.apis.size(); ++api) {
    const dump::EntryName parsed = walk.target.parsed_name(api);
    if (parsed.direction != dump::Direction::parameters_grad) continue;
    for (const std::uint32_t i : walk.target.apis[api].items()) {
      if (!walk.item_of(i).is_tensor || walk.errors.golden_item[i] == pairing::kNone) continue;
      const double e = foreseen(walk, i, walk.errors.golden_item[i]);
      if (!std::isfinite(e)) continue;
      walk.history.gradient_traces[gradient_key(parsed.base, walk.target.name(walk.item_of(i)))].error =
          static_cast<float>(e);
      errors.push_back(e);
    }
  }
  walk.drift->gradients = median_of(std::move(errors));
}

}  // namespace

void assess_drift(Walk& walk) {
  std::vector<double> errors;
  ContentMap known;
  double u = 0;
  pairing::for_each_parameter(
      walk.target, walk.errors.golden_item, [&](std::uint32_t item, std::uint32_t golden) {
        const double own = measuring::unit_roundoff(walk.target.text(walk.item_of(item).dtype));
        const std::uint64_t key = walk.golden_keys.of(golden);
        if (own == 0 || known.find(key) != ContentMap::kUnknown) return;
        known.put(key, golden);
        u = std::max(u, own);
        if (const double e = foreseen(walk, item, golden); std::isfinite(e)) errors.push_back(e);
      });
  walk.drift = drift_of(std::move(errors), u);
  if (walk.drift) foresee_gradients(walk);
}

void note_drift(Walk& walk) {
  if (!walk.drift) return;
  walk.out.drifted = true;
  walk.out.apart = !walk.drift->small;
  walk.out.notes.push_back(fmt::format(
      "{} of {} parameters already differ before the step, by up to {}: record from {} to see where that "
      "comes from{}",
      walk.drift->differing, walk.drift->parameters, error_text(walk.drift->largest),
      walk.out.apart ? "the first step" : "an earlier step",
      walk.out.apart ? "; if both runs were resumed there, compare the checkpoints (msprobe ckpt_compare)"
                     : ""));
}

}  // namespace msprobe::diagnosis
