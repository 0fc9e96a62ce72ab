// SPDX-License-Identifier: Apache-2.0
// Groups of options of `msprobe compare`: how rows are paired, and dumps without a dump.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compare/compare.hpp"
#include "support/option_list.hpp"

namespace msprobe::compare {

/// The pairing options as they were typed. -am, -cm and -lm may have no file.
struct PairingArguments {
  struct MappingOption {
    std::string file;
    Option option;
  };
  bool fuzzy = false;
  MappingOption api;
  MappingOption cell;
  MappingOption data;
  MappingOption layer;
  Option suggest_option;
  Option map_parameters_option;
};

void declare_pairing(OptionList& options, PairingArguments& arguments, Outputs& outputs);

/// Throws UsageError for options that exclude each other, unless the Python tool's rules let one of them win.
pairing::MatchOptions to_match_options(const PairingArguments& arguments);

/// The layout options as they were typed.
struct LayoutArguments {
  std::string ranks;
  std::string steps;
  bool consistent_check = false;
  bool merge_ranks = false;
  std::vector<std::string> tp;
  std::string backend;
  Option rank_option;
  Option step_option;
  Option consistent_option;
};

/// Parses -m. Throws UsageError for other modes, which says why those of the Python tool are not supported.
bool is_atb(const std::string& mode);

void declare_layouts(OptionList& options, LayoutArguments& arguments);

/// Throws UsageError for values that are no list of numbers.
void apply_layouts(const LayoutArguments& arguments, CompareOptions& options);

/// Reads rank_id, step_id, common and map_dict of 8.1.1's compare.json, which is called `file`. Throws
/// FormatError.
void read_layout_keys(const nlohmann::json& request, const std::string& file, CompareOptions& options);

}  // namespace msprobe::compare
