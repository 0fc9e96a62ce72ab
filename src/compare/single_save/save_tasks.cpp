// SPDX-License-Identifier: Apache-2.0
#include "compare/single_save/save_tasks.hpp"

#include <fmt/format.h>

#include "compare/lists/list_rows.hpp"
#include "compare/single_save/single_save.hpp"
#include "support/error.hpp"

namespace msprobe::compare {
namespace {

void tell_missing(const std::string& tag, const SavedArrays& here, const SavedArrays* there,
                  const char* where, std::vector<std::string>& lines) {
  constexpr std::size_t kMostOneSided = 20;
  std::size_t missing = 0;
  for (const auto& [key, file] : here) {
    if (there != nullptr && there->contains(key)) continue;
    if (++missing > kMostOneSided) continue;
    lines.push_back(fmt::format("{} {}: only in the {}", tag, saved_name(key), where));
  }
  if (missing > kMostOneSided)
    lines.push_back(fmt::format("{}: {} more only in the {}", tag, missing - kMostOneSided, where));
}

}  // namespace

Plan plan_single_saves(const FoundSaves& target, const FoundSaves& golden, const SavedTraits& traits,
                       Progress* progress) {
  Plan plan;
  plan.one_at_a_time = true;
  for (const auto& [tag, arrays] : target.tags) {
    const auto other = golden.tags.find(tag);
    tell_missing(tag, arrays, other == golden.tags.end() ? nullptr : &other->second, "target",
                 plan.one_sided);
    if (other == golden.tags.end()) continue;
    Task& task = plan.tasks.emplace_back();
    task.label = tag;
    task.name = tag;
    task.timed = false;
    task.workbook = true;
    task.target = target.path + "/data/" + tag;
    task.golden = golden.path + "/data/" + tag;
    task.run = [here = arrays, there = other->second, traits, progress] {
      return std::make_shared<ListRows>(Mode::tensor, compare_saved(here, there, traits, progress));
    };
  }
  for (const auto& [tag, arrays] : golden.tags) {
    const auto other = target.tags.find(tag);
    tell_missing(tag, arrays, other == target.tags.end() ? nullptr : &other->second, "golden side",
                 plan.one_sided);
  }
  if (plan.tasks.empty()) throw FormatError("the two trees of saved arrays have no tag in common");
  return plan;
}

}  // namespace msprobe::compare
