// SPDX-License-Identifier: Apache-2.0
// The state of a step besides its calls (docs/formats.md, "training").
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dump/entry.hpp"

namespace msprobe::dump {

struct OptimizerGroup {
  std::map<std::string, std::string>
      settings;       // as Python writes the values; texts, for example names of groups, do not count
  std::string steps;  // how many it has counted; empty: not known
  std::vector<std::string> parameters;  // their names; empty for one whose name is not known
  std::vector<double> gradient_norms;   // of their gradients as the optimizer takes them; NaN: not known
};

struct OptimizerSettings {
  std::string name;    // of its class
  std::string module;  // of its class
  std::vector<OptimizerGroup> groups;
};

/// The factor by which the loss is multiplied before the backward.
struct LossScaling {
  double scale = 0;      // 0: not known
  bool skipped = false;  // a gradient was not finite, and the optimizer made no step
};

/// A tensor that a model takes as a whole.
struct ModelInput {
  std::string shape;
  std::array<double, 4> numbers;  // Max, Min, Mean, Norm; NaN: not known
};

struct Training {
  std::vector<OptimizerSettings> optimizers;  // one for each step that an optimizer made
  /// Names of one and the same parameter; nothing where the model is not known.
  std::optional<std::vector<std::vector<std::string>>> tied;
  std::vector<ModelInput> inputs;            // of all calls of models, in order; empty: not known
  std::optional<LossScaling> loss_scale;     // nothing where no scaler was seen
  std::map<std::string, std::string> flags;  // of the framework, as Python writes the values
  /// Whether all tensors that were recorded were on the host. False also where the recorder does not say it.
  bool on_cpu = false;
};

/// Reads the description. Skips members that it does not know, and values of the wrong type.
Training training_of(const Entry& description);

/// Two optimizers of one class that share the parameters between them make the same step as one that has all
/// of them. If the sides share them out otherwise, each gets a single step. A side that only lacks a step of
/// the other keeps its steps.
void join_steps(Training& one, Training& other);

}  // namespace msprobe::dump
