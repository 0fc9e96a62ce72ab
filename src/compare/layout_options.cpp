// SPDX-License-Identifier: Apache-2.0
#include "compare/layout_options.hpp"

#include <nlohmann/json.hpp>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

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

}  // namespace

DumpKind dump_kind(const std::string& mode) {
  if (mode == "auto") return DumpKind::automatic;
  if (mode == "atb") return DumpKind::atb;
  const auto refuse = [&](const char* reason) {
    throw UsageError("-m " + mode + " is not supported: " + reason);
  };
  if (mode == "torchair") {
    refuse(
        "which operators were fused stands in the text of the vendor's graph engine, and only its own parser "
        "reads that");
  }
  if (mode == "offline_data") refuse("it runs the comparison tool of an installed CANN toolkit");
  if (mode == "offline_model") {
    refuse("it runs the ONNX and the OM model itself, with onnxruntime and the inference runtime of CANN");
  }
  throw UsageError("-m: '" + display(mode) + "' is none of auto, atb");
}

void declare_layouts(OptionList& options, LayoutArguments& arguments) {
  arguments.rank_option =
      options.add("--rank", arguments.ranks, "Static-graph dumps of MindSpore: only these ranks, 0,2-5")
          .argument("LIST");
  arguments.step_option =
      options.add("--step", arguments.steps, "Static-graph dumps of MindSpore: only these steps")
          .argument("LIST");
  options.add_flag("--consistent_check", arguments.consistent_check,
                   "The target is a training of verl, the golden side its inference");
  options.add("--backend", arguments.backend, "What trained, for --consistent_check: fsdp, megatron")
      .argument("NAME");
}

void apply_layouts(const LayoutArguments& arguments, CompareOptions& options) {
  if (arguments.consistent_check) {
    options.rank.backend = backend_from_name(arguments.backend);
    if (!options.rank.backend) {
      throw UsageError("--consistent_check needs --backend fsdp or --backend megatron");
    }
    if (options.rank.match.method != Method::exact || options.rank.match.fuzzy) {
      throw UsageError("--consistent_check pairs rows by itself: leave out the options that pair them");
    }
  } else if (!arguments.backend.empty()) {
    throw UsageError("--backend belongs to --consistent_check");
  }
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
                      "common and map_dict ask for the comparison of folders with .npy files that 8.1.1 had, "
                      "which is not supported: 26.x has no such command either");
  }
  if (request.contains("rank_id") || request.contains("step_id")) {
    options.inputs.graph =
        GraphSelection{number_list(request, "rank_id", file), number_list(request, "step_id", file)};
  }
}

}  // namespace msprobe::compare
