// SPDX-License-Identifier: Apache-2.0
#include "dump/training.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>

namespace msprobe::dump {
namespace {

std::vector<std::string> texts(const Entry& entry, Entry::Index list) {
  std::vector<std::string> found;
  if (!entry.is(list, NodeKind::array)) return found;
  entry.children(list, [&](Entry::Index child) { found.emplace_back(entry.string(child)); });
  return found;
}

OptimizerGroup group_of(const Entry& entry, Entry::Index node) {
  OptimizerGroup group;
  if (const Entry::Index settings = entry.find(node, "settings"); entry.is(settings, NodeKind::object)) {
    entry.children(settings, [&](Entry::Index child) {
      if (!entry.is(child, NodeKind::string))
        group.settings[std::string(entry.key(child))] = entry.python_str(child);
    });
  }
  const Entry::Index steps = entry.find(node, "steps");
  if (entry.is(steps, NodeKind::array) && !entry.empty(steps)) group.steps = entry.python_str(steps);
  group.parameters = texts(entry, entry.find(node, "parameters"));
  if (const Entry::Index norms = entry.find(node, "gradient_norms"); entry.is(norms, NodeKind::array)) {
    entry.children(norms, [&](Entry::Index child) {
      group.gradient_norms.push_back(entry.is_number(child) ? entry.number(child) : NAN);
    });
  }
  return group;
}

using Names = std::multiset<std::string>;

Names names_of(const OptimizerSettings& step) {
  Names names;
  for (const OptimizerGroup& group : step.groups)
    names.insert(group.parameters.begin(), group.parameters.end());
  return names;
}

/// Whether steps of one class share parameters out between them, all of which have names.
bool share_out(const std::vector<OptimizerSettings>& steps) {
  std::set<std::string> known{""};
  return std::ranges::all_of(steps, [&](const OptimizerSettings& step) {
    const Names names = names_of(step);
    return step.name == steps.front().name && step.module == steps.front().module &&
           std::ranges::all_of(names, [&](const std::string& name) { return known.insert(name).second; });
  });
}

/// Whether each step updates the same parameters as a step of the other side.
bool are_among(const std::vector<OptimizerSettings>& steps, const std::vector<OptimizerSettings>& others) {
  return std::ranges::all_of(steps, [&](const OptimizerSettings& step) {
    return std::ranges::find(others, names_of(step), names_of) != others.end();
  });
}

void join(std::vector<OptimizerSettings>& steps) {
  for (std::size_t i = 1; i < steps.size(); ++i)
    std::ranges::move(steps[i].groups, std::back_inserter(steps.front().groups));
  steps.resize(1);
}

}  // namespace

Training training_of(const Entry& description) {
  Training training;
  const auto each_of = [&](Entry::Index list, const auto& visit) {
    if (description.is(list, NodeKind::array)) description.children(list, visit);
  };
  each_of(description.find(0, "optimizers"), [&](Entry::Index node) {
    OptimizerSettings& optimizer = training.optimizers.emplace_back();
    optimizer.name = description.string(node, "class");
    optimizer.module = description.string(node, "module");
    each_of(description.find(node, "groups"),
            [&](Entry::Index group) { optimizer.groups.push_back(group_of(description, group)); });
  });
  const Entry::Index tied = description.find(0, "tied_parameters");
  if (description.is(tied, NodeKind::array)) training.tied.emplace();
  each_of(tied, [&](Entry::Index names) { training.tied->push_back(texts(description, names)); });
  each_of(description.find(0, "inputs"), [&](Entry::Index call) {
    each_of(call, [&](Entry::Index tensor) {
      ModelInput& input = training.inputs.emplace_back();
      const Entry::Index shape = description.find(tensor, "shape");
      if (description.is(shape, NodeKind::array)) input.shape = description.python_str(shape);
      std::size_t next = 0;
      for (const Entry::Index number : description.find_all<4>(tensor, {"Max", "Min", "Mean", "Norm"}))
        input.numbers[next++] = description.is_number(number) ? description.number(number) : NAN;
    });
  });
  if (const Entry::Index scaler = description.find(0, "loss_scale");
      description.is(scaler, NodeKind::object)) {
    LossScaling& scaling = training.loss_scale.emplace();
    const Entry::Index scale = description.find(scaler, "scale");
    if (description.is_number(scale) && description.number(scale) > 0)
      scaling.scale = description.number(scale);
    const Entry::Index skipped = description.find(scaler, "skipped");
    scaling.skipped = description.is(skipped, NodeKind::boolean) && description.boolean(skipped);
  }
  training.on_cpu = texts(description, description.find(0, "devices")) == std::vector<std::string>{"cpu"};
  if (const Entry::Index flags = description.find(0, "torch_flags");
      description.is(flags, NodeKind::object)) {
    description.children(flags, [&](Entry::Index flag) {
      if (!description.is_container(flag))
        training.flags[std::string(description.key(flag))] = description.python_str(flag);
    });
  }
  return training;
}

void join_steps(Training& one, Training& other) {
  if (one.optimizers.empty() || other.optimizers.empty() || !share_out(one.optimizers) ||
      !share_out(other.optimizers) || are_among(one.optimizers, other.optimizers) ||
      are_among(other.optimizers, one.optimizers))
    return;
  join(one.optimizers);
  join(other.optimizers);
}

}  // namespace msprobe::dump
