// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "checkpoint/names.hpp"

namespace msprobe::checkpoint {
namespace {

using ByName = std::unordered_map<std::string, std::size_t>;

ByName index_by_name(const std::vector<LooseParameter>& all) {
  ByName index;
  for (std::size_t i = 0; i < all.size(); ++i) index.emplace(all[i].entry.parameter.name, i);
  return index;
}

/// The name of a tensor with all experts, and of each expert by itself.
struct Stack {
  std::string_view tail;  // of the name of all of them
  std::string_view head;  // before the number
  std::string_view leaf;  // after the number
  std::size_t rank;
  bool transposed;  // always, as Megatron's; else the shapes decide
};

constexpr std::array<Stack, 6> kStacks = {{
    {".experts.weight1", ".experts.local_experts.", ".linear_fc1.weight", 3, true},
    {".experts.weight2", ".experts.local_experts.", ".linear_fc2.weight", 3, true},
    {".experts.gate_up_proj", ".experts.", ".gate_up_proj.weight", 3, false},
    {".experts.down_proj", ".experts.", ".down_proj.weight", 3, false},
    {".experts.gate_up_proj_bias", ".experts.", ".gate_up_proj.bias", 2, false},
    {".experts.down_proj_bias", ".experts.", ".down_proj.bias", 2, false},
}};

const Stack* stack_of(const CheckpointEntry& entry) {
  const auto found = std::ranges::find_if(kStacks, [&](const Stack& stack) {
    return entry.parameter.name.ends_with(stack.tail) && entry.parameter.shape.size() == stack.rank;
  });
  return found == kStacks.end() ? nullptr : &*found;
}

/// Some models multiply by these from the other side. The two projections together show it: the hidden size
/// is the axis that they have in common.
bool lies_across(const std::string& stem, const std::vector<LooseParameter>& all, const ByName& index) {
  const auto shape_of = [&](const char* tail) -> const Shape* {
    const auto found = index.find(stem + tail);
    return found == index.end() ? nullptr : &all[found->second].entry.parameter.shape;
  };
  const Shape* in = shape_of(".experts.gate_up_proj");
  const Shape* out = shape_of(".experts.down_proj");
  if (in == nullptr || out == nullptr || in->size() != 3 || out->size() != 3) return false;
  const bool along = (*in)[2] == (*out)[1] && (*in)[1] == 2 * (*out)[2];
  return !along && (*in)[1] == (*out)[2] && (*in)[2] == 2 * (*out)[1];
}

const std::string& own_name(const LooseParameter& loose) {
  return loose.own_name.empty() ? loose.entry.parameter.name : loose.own_name;
}

/// Joins names as "mlp.gate_proj.weight + up_proj.weight": the part before the last dots that they have in
/// common appears once.
std::string joined_name(const std::vector<std::string>& names) {
  const std::string& first = names.front();
  std::size_t common = first.size();
  for (const std::string& name : names) {
    const auto differ = std::ranges::mismatch(first, name).in1;
    common = std::min(common, static_cast<std::size_t>(differ - first.begin()));
  }
  const std::size_t dot = common == 0 ? std::string::npos : first.rfind('.', common - 1);
  const std::size_t head = dot == std::string::npos ? 0 : dot + 1;
  std::string text = first;
  for (std::size_t i = 1; i < names.size(); ++i) text += " + " + names[i].substr(head);
  return text;
}

/// Takes one expert out of a stack, or out of a copy of the stack.
Parameter one_of(const Parameter& all, std::int64_t expert, bool across) {
  Parameter one = drop_axis(narrow(all, 0, expert, 1), 0);
  return across ? transposed(one) : one;
}

std::vector<LooseParameter> take_apart(const std::vector<LooseParameter>& all, StackBudget& budget) {
  const ByName index = index_by_name(all);
  std::vector<LooseParameter> apart;
  for (const LooseParameter& loose : all) {
    const CheckpointEntry& entry = loose.entry;
    const Stack* stack = entry.problem.empty() ? stack_of(entry) : nullptr;
    const std::int64_t count = stack == nullptr ? 0 : entry.parameter.shape[0];
    std::size_t blocks = 1 + entry.parameter.blocks.size();
    for (const Replica& replica : entry.replicas) {
      blocks += replica.parameter.blocks.size();
      if (replica.original) stack = nullptr;  // a copy of a part would need the same cuts
    }
    if (stack == nullptr || !budget.take(count, blocks)) {
      apart.push_back(loose);
      continue;
    }
    const std::string stem = entry.parameter.name.substr(0, entry.parameter.name.size() - stack->tail.size());
    const bool across = stack->rank == 3 && (stack->transposed || lies_across(stem, all, index));
    for (std::int64_t expert = 0; expert < count; ++expert) {
      LooseParameter& one = apart.emplace_back();
      one.sources = loose.sources;
      one.entry.parameter = one_of(entry.parameter, expert, across);
      one.entry.parameter.name = fmt::format("{}{}{}{}", stem, stack->head, expert, stack->leaf);
      one.own_name = fmt::format("{}[{}]", own_name(loose), expert);
      for (const Replica& replica : entry.replicas) {
        one.entry.replicas.push_back({one_of(replica.parameter, expert, across), replica.where, {}});
      }
    }
  }
  return apart;
}

/// Joins parameters that are separate on this side where the other side has them fused: queries, keys and
/// values one below the other, or gate and up projections.
std::vector<LooseParameter> fused_like(std::vector<LooseParameter> all,
                                       const std::vector<LooseParameter>& other) {
  struct Fusion {
    std::string_view to;
    std::vector<std::string_view> from;
  };
  static const std::array<Fusion, 2> kFusions = {
      {{"qkv_proj", {"q_proj", "k_proj", "v_proj"}}, {"gate_up_proj", {"gate_proj", "up_proj"}}}};
  const ByName index = index_by_name(all);
  const ByName wanted = index_by_name(other);
  std::vector<bool> used(all.size());
  std::vector<LooseParameter> result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& name = all[i].entry.parameter.name;
    for (const Fusion& fusion : kFusions) {
      const std::string first = "." + std::string(fusion.from[0]) + ".";
      const std::size_t at = name.rfind(first);
      if (at == std::string::npos || used[i]) continue;
      const auto called = [&](std::string_view part) {
        return name.substr(0, at + 1) + std::string(part) + name.substr(at + first.size() - 1);
      };
      std::string to = called(fusion.to);
      if (wanted.find(to) == wanted.end()) continue;
      std::vector<const CheckpointEntry*> parts;
      LooseParameter fused;
      std::vector<std::string> names;
      for (const std::string_view part : fusion.from) {
        const auto found = index.find(called(part));
        if (found == index.end() || used[found->second]) break;
        parts.push_back(&all[found->second].entry);
        names.push_back(own_name(all[found->second]));
        const auto& sources = all[found->second].sources;
        fused.sources.insert(fused.sources.end(), sources.begin(), sources.end());
      }
      if (parts.size() != fusion.from.size()) continue;
      fused.entry = join_entries(to, parts, ParameterJoin::rows, {});
      fused.own_name = joined_name(names);
      for (const std::string_view part : fusion.from) used[index.at(called(part))] = true;
      result.push_back(std::move(fused));
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!used[i]) result.push_back(std::move(all[i]));
  }
  return result;
}

/// Applies the map. Its rules may need the head `model.`, which was taken off or was never there.
std::vector<LooseParameter> mapped(std::vector<LooseParameter> all, const NameMap& map,
                                   const Architecture& architecture) {
  std::vector<std::string> names;
  for (const LooseParameter& loose : all) names.push_back(loose.entry.parameter.name);
  const bool any_head =
      std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("model."); });
  if (!any_head) {
    for (std::string& name : names) {
      if (name.starts_with("layers.")) name.insert(0, "model.");
    }
  }
  std::vector<LooseParameter> result;
  for (const NameMap::Made& made : map.apply(names)) {
    LooseParameter& loose = result.emplace_back();
    std::vector<const CheckpointEntry*> parts;
    std::vector<std::string> own;
    for (const std::size_t i : made.from) {
      parts.push_back(&all[i].entry);
      own.push_back(own_name(all[i]));
      loose.sources.insert(loose.sources.end(), all[i].sources.begin(), all[i].sources.end());
    }
    // A name that no rule took stays as it was.
    const bool stays = made.from.size() == 1 && made.name == names[made.from[0]];
    loose.own_name = joined_name(own);
    loose.entry = join_entries(stays ? parts[0]->parameter.name : made.name, parts, made.join, architecture);
  }
  return result;
}

void pair_by_key(std::vector<LooseParameter>& first, std::vector<LooseParameter>& second, FormPairs& found) {
  std::unordered_map<std::string, std::size_t> keys;
  for (std::size_t i = 0; i < second.size(); ++i) keys.emplace(expert_key(second[i].entry.parameter.name), i);
  std::vector<bool> used(second.size());
  std::vector<LooseParameter> alone;
  for (LooseParameter& loose : first) {
    const auto partner = keys.find(expert_key(loose.entry.parameter.name));
    if (partner == keys.end() || used[partner->second] ||
        are_stacks_of_two_forms(loose.entry, second[partner->second].entry)) {
      alone.push_back(std::move(loose));
      continue;
    }
    used[partner->second] = true;
    // A name that neither checkpoint has would only confuse a reader.
    const LooseParameter& other = second[partner->second];
    const bool is_known =
        own_name(loose) == loose.entry.parameter.name || own_name(other) == other.entry.parameter.name;
    std::string name = is_known ? loose.entry.parameter.name : own_name(loose);
    found.pairs.push_back({std::move(name), std::move(loose), std::move(second[partner->second])});
  }
  first = std::move(alone);
  std::size_t at = 0;
  std::erase_if(second, [&](const LooseParameter&) { return used[at++]; });
}

}  // namespace

bool are_stacks_of_two_forms(const CheckpointEntry& first, const CheckpointEntry& second) {
  return first.problem.empty() && second.problem.empty() && stack_of(first) != nullptr &&
         stack_of(second) != nullptr && first.parameter.shape != second.parameter.shape;
}

FormPairs pair_forms(LooseSide first, LooseSide second, const NameMap& map,
                     const Architecture& architecture) {
  FormPairs found;
  if (first.parameters.empty() || second.parameters.empty()) return found;
  first.parameters = fused_like(std::move(first.parameters), second.parameters);
  second.parameters = fused_like(std::move(second.parameters), first.parameters);
  pair_by_key(first.parameters, second.parameters, found);
  StackBudget budget;
  for (LooseSide* side : {&first, &second}) {
    side->parameters = take_apart(side->parameters, budget);
    if (side->is_mapped) side->parameters = mapped(std::move(side->parameters), map, architecture);
  }
  pair_by_key(first.parameters, second.parameters, found);
  found.first = std::move(first.parameters);
  found.second = std::move(second.parameters);
  return found;
}

}  // namespace msprobe::checkpoint
