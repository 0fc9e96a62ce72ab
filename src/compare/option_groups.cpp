// SPDX-License-Identifier: Apache-2.0
#include "compare/option_groups.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using pairing::Method;

NumberList number_list(const nlohmann::json& request, const char* key, const std::string& file) {
  NumberList list;
  const auto found = request.find(key);
  if (found == request.end()) return list;
  const auto refuse = [&] {
    throw FormatError(display(file), std::string(key) + " must be a list of integers");
  };
  if (!found->is_array()) refuse();
  for (const nlohmann::json& each : *found) {
    if (!each.is_number_integer()) refuse();
    const auto number = each.get<std::int64_t>();
    list.add(number, number);
  }
  return list;
}

void apply_merge(const LayoutArguments& arguments, CompareOptions& options) {
  if (!arguments.merge_ranks) return;
  const char* other = options.rank.backend                                             ? "--consistent_check"
                      : options.rank.first_difference                                  ? "-da"
                      : !options.rank.diagnosis.noise_floor.empty()                    ? "--noise-floor"
                      : !options.rank.diagnosis.wanted                                 ? "--python-rules"
                      : options.inputs.atb                                             ? "-m"
                      : arguments.rank_option.given() || arguments.step_option.given() ? "--rank and --step"
                                                                                       : nullptr;
  if (other != nullptr) throw UsageError(std::string("--merge-ranks and ") + other + " cannot be combined");
  options.rank.merge_ranks = true;
  for (std::size_t side = 0; side < arguments.tp.size(); ++side) {
    const std::optional<double> number = parse_number(arguments.tp[side]);
    constexpr double kMostRanks = 1e6;
    if (!number || !(*number >= 1) || *number > kMostRanks || *number != std::floor(*number))
      throw UsageError("--tp " + display(arguments.tp[side]) + ": not a number of ranks");
    options.rank.merged[side] = static_cast<std::size_t>(*number);
  }
}

}  // namespace

void declare_pairing(OptionList& options, PairingArguments& arguments, Outputs& outputs) {
  options
      .add_flag("-fm,--fuzzy_match", arguments.fuzzy,
                "Pair rows whose names differ only in the call number, in order of execution")
      .details(
          "For rows paired under different names, `Err_message` says so.\n"
          "Can be combined with -am and -cm.");
  const auto add = [&](PairingArguments::MappingOption& mapping, const char* names, const char* help,
                       const char* details) {
    mapping.option = options.add(names, mapping.file, help).details(details);
  };
  add(arguments.api, "-am,--api_mapping[=FILE]",
      "Pair MindSpore operations with PyTorch operations, by a built-in table and this YAML file",
      "The file adds one or more YAML rules with `ms_api` and `pt_api`, and the corresponding numbers in "
      "`ms_args` and `pt_args`, `ms_output` and `pt_output`, `ms_parameters` and `pt_parameters`, "
      "`ms_parameters_grad` and `pt_parameters_grad`.");
  add(arguments.cell, "-cm,--cell_mapping[=FILE]",
      "Pair MindSpore cells with PyTorch modules, and modules by the names in this YAML file",
      "`Cell.` pairs with `Module.`; a name in the file is the full path of a module with its class, or any "
      "part of it.");
  add(arguments.data, "-dm,--data_mapping=FILE", "Pair rows by this YAML file of target and golden row names",
      "Other rows are paired by name.");
  add(arguments.layer, "-lm,--layer_mapping[=FILE]",
      "Pair operations by their position in the model (construct.json, stack.json), using the layer names in "
      "this YAML file",
      "The file gives the golden names of layers: a YAML mapping of classes to mappings of paths below them "
      "(`TopLayer` is the outermost).\n"
      "The pairs are also written, as <data_mapping_TIME.yaml>.\n"
      "Only one of -am, -cm, -dm and -lm is possible; docs/pairing.md explains which one to use.");
  arguments.suggest_option = options
                                 .add("--suggest-mapping=FILE", outputs.suggest_mapping,
                                      "Write a suggested mapping for -dm that pairs unmatched rows")
                                 .details(
                                     "It has the pairs whose names differ, and suggested pairs for unmatched "
                                     "entries, found by name, shape, kind of dtype and order.\n"
                                     "Review it before you use it.");
  arguments.map_parameters_option =
      options
          .add("--map-parameters=FILE", outputs.map_parameters,
               "Write which parameter of the target is which of golden, by what is in them, as a mapping for "
               "-dm")
          .details(
              "Comments list parameters that one side has in several parts, such as a joined projection of "
              "queries, keys and values, and parameters without a partner. Statistics are enough, but do not "
              "show the order of elements.");
}

pairing::MatchOptions to_match_options(const PairingArguments& arguments) {
  struct Choice {
    const char* name;
    const PairingArguments::MappingOption& mapping;
    Method method;
  };
  // The order is the Python tool's order of preference.
  const std::array<Choice, 4> choices = {{{"-am", arguments.api, Method::api},
                                          {"-cm", arguments.cell, Method::cell},
                                          {"-lm", arguments.layer, Method::layer},
                                          {"-dm", arguments.data, Method::data}}};
  pairing::MatchOptions options;
  options.fuzzy = arguments.fuzzy;
  const Choice* chosen = nullptr;
  for (const Choice& choice : choices) {
    if (!choice.mapping.option.given()) continue;
    if (chosen == nullptr) {
      chosen = &choice;
    } else {
      throw UsageError(std::string(chosen->name) + " and " + choice.name +
                       " cannot be combined: only one mapping can pair the rows");
    }
  }
  if (chosen == nullptr) return options;
  options.method = chosen->method;
  options.mapping_file = chosen->mapping.file;
  const bool names_rows = options.method == Method::data || options.method == Method::layer;
  if (options.fuzzy && names_rows) {
    throw UsageError(std::string("-fm and ") + chosen->name +
                     " cannot be combined: the mapping names every row with its call number");
  }
  return options;
}

bool is_atb(const std::string& mode) {
  if (mode == "auto" || mode == "atb") return mode == "atb";
  constexpr std::pair<std::string_view, const char*> kReasons[] = {
      {"torchair",
       "the fused operators are listed in a text format of the vendor's graph engine, which only its own "
       "parser reads"},
      {"offline_data", "it runs the comparison tool of an installed CANN toolkit"},
      {"offline_model",
       "it runs the ONNX and OM models itself, with onnxruntime and the CANN inference runtime"}};
  for (const auto& [unsupported, reason] : kReasons) {
    if (mode == unsupported) throw UsageError("-m " + mode + " is not supported: " + reason);
  }
  throw UsageError("-m: '" + display(mode) + "' is not one of auto, atb");
}

void declare_layouts(OptionList& options, LayoutArguments& arguments) {
  arguments.rank_option = options.add("--rank=LIST", arguments.ranks,
                                      "MindSpore static-graph dumps: only these ranks, such as 0,2-5");
  arguments.step_option =
      options.add("--step=LIST", arguments.steps, "MindSpore static-graph dumps: only these steps");
  const Option merge_ranks =
      options.add_flag("--merge-ranks", arguments.merge_ranks,
                       "Merge the ranks of a step into one model and compare the whole");
  options
      .add("--tp=N", arguments.tp,
           "With --merge-ranks: neighbouring ranks per model (a second value: of golden); default: all")
      .values(1, 2)
      .needs(merge_ranks);
  arguments.consistent_option =
      options.add_flag("--consistent_check", arguments.consistent_check,
                       "Compare a verl training (target) with its inference (golden)");
  options.add("--backend=NAME", arguments.backend, "Training backend for --consistent_check: fsdp, megatron")
      .suggest({"fsdp", "megatron"})
      .needs(arguments.consistent_option);
}

void apply_layouts(const LayoutArguments& arguments, CompareOptions& options) {
  if (arguments.consistent_check) {
    options.rank.backend = pairing::backend_from_name(arguments.backend);
    if (!options.rank.backend) {
      throw UsageError("--consistent_check needs --backend fsdp or --backend megatron");
    }
    if (options.rank.match.method != Method::exact || options.rank.match.fuzzy) {
      throw UsageError("--consistent_check pairs rows itself: leave out the pairing options");
    }
  }
  apply_merge(arguments, options);
  const bool ranks = arguments.rank_option.given();
  const bool steps = arguments.step_option.given();
  if (ranks || steps) {
    options.inputs.graph = GraphSelection{NumberList::parse("--rank", arguments.ranks),
                                          NumberList::parse("--step", arguments.steps)};
  }
}

void read_layout_keys(const nlohmann::json& request, const std::string& file, CompareOptions& options) {
  const auto common = request.find("common");
  if (common != request.end() && !common->is_boolean()) {
    throw FormatError(display(file), "common must be true or false");
  }
  if ((common != request.end() && common->get<bool>()) || request.contains("map_dict")) {
    throw FormatError(display(file),
                      "common and map_dict request the comparison of .npy folders of 8.1.1, "
                      "which is not supported: 26.x does not have it either");
  }
  if (request.contains("rank_id") || request.contains("step_id")) {
    options.inputs.graph =
        GraphSelection{number_list(request, "rank_id", file), number_list(request, "step_id", file)};
  }
}

}  // namespace msprobe::compare
