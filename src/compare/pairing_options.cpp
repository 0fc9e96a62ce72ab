// SPDX-License-Identifier: Apache-2.0
#include "compare/pairing_options.hpp"

#include <array>

#include "support/error.hpp"

namespace msprobe::compare {

void declare_pairing(OptionList& options, PairingArguments& arguments) {
  options.add_flag("--fuzzy_match", arguments.fuzzy,
                   "Pair rows whose names differ in the call number only, in order of execution");
  const auto add = [&](PairingArguments::Mapping& mapping, const char* name, const char* help) -> Option& {
    mapping.option = options.add(name, mapping.file, help).argument("FILE");
    return mapping.option;
  };
  add(arguments.api, "--api_mapping",
      "Pair MindSpore's operations with PyTorch's, by a built-in table and this YAML file")
      .values(0, 1);
  add(arguments.cell, "--cell_mapping",
      "Pair MindSpore's cells with PyTorch's modules, and modules by this YAML file of names")
      .values(0, 1);
  add(arguments.data, "--data_mapping", "Pair rows by this YAML file of target row names and golden ones");
  add(arguments.layer, "--layer_mapping",
      "Pair operations that stand at one place of the model (construct.json, stack.json), places by this "
      "YAML file")
      .values(0, 1);
  options
      .add("--suggest-mapping", arguments.suggest,
           "Write a proposal for -dm: which rows without partner could belong together")
      .argument("FILE");
}

MatchOptions to_match_options(const PairingArguments& arguments, const PairingTraits& traits) {
  struct Choice {
    const char* name;
    const PairingArguments::Mapping& mapping;
    Method method;
  };
  // In the order in which the Python tool prefers them.
  const std::array<Choice, 4> choices = {{{"-am", arguments.api, Method::api},
                                          {"-cm", arguments.cell, Method::cell},
                                          {"-lm", arguments.layer, Method::layer},
                                          {"-dm", arguments.data, Method::data}}};
  MatchOptions options;
  options.fuzzy = arguments.fuzzy;
  const Choice* chosen = nullptr;
  for (const Choice& choice : choices) {
    if (!choice.mapping.option.given()) continue;
    if (chosen == nullptr) {
      chosen = &choice;
    } else if (!traits.first_mapping_wins) {
      throw UsageError(std::string(chosen->name) + " and " + choice.name +
                       " exclude each other: one mapping makes the pairs");
    }
  }
  if (chosen == nullptr) return options;
  options.method = chosen->method;
  options.mapping_file = chosen->mapping.file;
  const bool names_rows = options.method == Method::data || options.method == Method::layer;
  if (options.fuzzy && names_rows && !traits.first_mapping_wins) {
    throw UsageError(std::string("-fm and ") + chosen->name +
                     " exclude each other: the mapping names every row with its call number");
  }
  return options;
}

}  // namespace msprobe::compare
