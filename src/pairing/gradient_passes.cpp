// SPDX-License-Identifier: Apache-2.0
#include "pairing/gradient_passes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <unordered_map>

#include "dump/names.hpp"
#include "pairing/updates.hpp"

namespace msprobe::pairing {
namespace {

using dump::Api;
using dump::ConstructTable;
using dump::Direction;
using dump::Side;

/// The forward calls of a module and the entries of its gradients, of the target and of golden.
struct ModulePasses {
  std::array<std::uint32_t, 2> calls{};
  std::array<std::vector<std::uint32_t>, 2> entries;

  bool differ() const {
    return calls[0] == calls[1] && entries[0].size() != entries[1].size() && !entries[0].empty() &&
           !entries[1].empty();
  }
};

/// Whether the gradients after two passes have the same norms, to a thousandth.
bool are_alike(const Side& target, const Api& ours, const Side& golden, const Api& theirs) {
  constexpr double kSame = 1e-3;
  if (ours.count != theirs.count) return false;
  for (std::uint32_t n = 0; n < ours.count; ++n) {
    const auto norm_of = [n](const Side& side, const Api& api) {
      const dump::Classified norm =
          dump::classify(side.items[api.first + n].statistics[dump::kNorm], side.pool);
      return norm.type == dump::ValueClass::number ? std::abs(norm.number) : NAN;
    };
    const double norm = norm_of(target, ours);
    const double other = norm_of(golden, theirs);
    if (!(std::abs(norm - other) <= kSame * std::max(norm, other))) return false;
  }
  return true;
}

/// The passes of each side that gave the same gradients, if all passes of one side are among them.
std::vector<std::pair<std::uint32_t, std::uint32_t>> same_passes(const Side& target, const Side& golden,
                                                                 const ModulePasses& of) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> same;
  std::size_t next = 0;
  for (const std::uint32_t ours : of.entries[0]) {
    for (std::size_t n = next; n < of.entries[1].size(); ++n) {
      const std::uint32_t theirs = of.entries[1][n];
      if (!are_alike(target, target.apis[ours], golden, golden.apis[theirs])) continue;
      same.emplace_back(ours, theirs);
      next = n + 1;
      break;
    }
  }
  if (same.size() < std::min(of.entries[0].size(), of.entries[1].size())) same.clear();
  return same;
}

/// Passes whose gradients add up.
struct Sum {
  std::vector<std::uint32_t> passes;
  bool taken = false;  // by a step of the optimizer
};

std::vector<Sum> sums_of(const std::vector<std::uint32_t>& passes, const std::vector<std::uint32_t>& steps) {
  std::vector<Sum> sums(1);
  for (std::size_t n = 0; n < passes.size(); ++n) {
    if (sums.back().taken) sums.emplace_back();
    sums.back().passes.push_back(passes[n]);
    const bool is_last = n + 1 == passes.size();
    sums.back().taken = std::any_of(steps.begin(), steps.end(), [&](std::uint32_t step) {
      return passes[n] < step && (is_last || step < passes[n + 1]);
    });
  }
  return sums;
}

}  // namespace

GradientPasses pair_gradient_passes(const Side& target, const ConstructTable* target_construct,
                                    const Side& golden, const ConstructTable* golden_construct) {
  GradientPasses found;
  const std::array<const Side*, 2> sides = {&target, &golden};
  std::unordered_map<std::string_view, ModulePasses> modules;
  for (std::size_t k = 0; k < sides.size(); ++k) {
    for (std::uint32_t i = 0; i < sides[k]->apis.size(); ++i) {
      const dump::EntryName parsed = sides[k]->parsed_name(i);
      if (!parsed.is_module) continue;
      if (parsed.direction == Direction::forward) ++modules[parsed.base].calls[k];
      if (parsed.direction == Direction::parameters_grad) modules[parsed.base].entries[k].push_back(i);
    }
  }
  std::erase_if(modules, [](const auto& each) { return !each.second.differ(); });
  if (modules.empty()) return found;
  const std::array<const ConstructTable*, 2> constructs = {target_construct, golden_construct};
  const std::array<std::vector<bool>*, 2> earlier = {&found.target_earlier, &found.golden_earlier};
  std::array<std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>, 2> updates;
  for (std::size_t k = 0; k < sides.size(); ++k) {
    earlier[k]->assign(sides[k]->apis.size(), false);
    if (constructs[k] != nullptr) updates[k] = calls_by_parameter(*sides[k], *constructs[k]);
  }
  for (const auto& [module, of] : modules) {
    found.modules.insert(module);
    std::array<std::vector<std::uint32_t>, 2> steps;  // calls of the optimizer that take its gradients
    for (std::size_t k = 0; k < sides.size(); ++k) {
      for (const std::uint32_t i : sides[k]->apis[of.entries[k].front()].items()) {
        const auto calls = updates[k].find(parameter_key(*sides[k], sides[k]->items[i]));
        if (calls != updates[k].end())
          steps[k].insert(steps[k].end(), calls->second.begin(), calls->second.end());
      }
    }
    const bool known = !steps[0].empty() && !steps[1].empty();
    std::array<std::vector<Sum>, 2> sums;
    for (std::size_t k = 0; k < sides.size(); ++k) {
      sums[k] = sums_of(of.entries[k], known ? steps[k] : std::vector<std::uint32_t>());
      for (const std::uint32_t pass : of.entries[k]) (*earlier[k])[pass] = true;
    }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs = same_passes(target, golden, of);
    const std::size_t common = pairs.empty() ? std::min(sums[0].size(), sums[1].size()) : 0;
    for (std::size_t n = 0; n < common; ++n) {
      auto theirs = sums[1][n].passes.rbegin();
      for (auto ours = sums[0][n].passes.rbegin();
           ours != sums[0][n].passes.rend() && theirs != sums[1][n].passes.rend(); ++ours, ++theirs) {
        pairs.emplace_back(*ours, *theirs);
      }
    }
    for (const auto& [ours, theirs] : pairs) {
      found.pairs.emplace_back(ours, theirs);
      found.target_earlier[ours] = found.golden_earlier[theirs] = false;
    }
    // A sum that a step of one side takes trains that run alone: no later gradient contains it.
    for (std::size_t k = 0; k < sides.size(); ++k) {
      for (const Sum& sum : sums[k]) {
        const bool alone =
            std::ranges::all_of(sum.passes, [&](std::uint32_t pass) { return (*earlier[k])[pass]; });
        if (sum.taken && alone) (*earlier[k])[sum.passes.back()] = false;
      }
    }
  }
  return found;
}

}  // namespace msprobe::pairing
