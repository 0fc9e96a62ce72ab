// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/build.hpp"
#include "pairing/mapping_file.hpp"
#include "pairing/request.hpp"
#include "support/ascii.hpp"
#include "support/byte_source.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

constexpr std::size_t kShownWarnings = 5;

/// A line for a program that shows how far the work is.
void print_progress(double percent, bool running, const std::vector<std::string>& problems) {
  JsonWriter json;
  json.open_object();
  json.member("current_progress", percent);
  json.member("process_running", running);
  json.member("error_msg", problems);
  json.close();
  write_all(STDOUT_FILENO, "PROGRESS: " + json.take() + "\n", "standard output");
}

/// The value for each side; empty if the option has no value.
std::vector<int> sizes_of(std::string_view option, const std::vector<std::string>& texts, std::size_t sides) {
  if (!texts.empty() && texts.size() != sides) {
    throw UsageError(
        fmt::format("{} needs {}", option,
                    sides == 1 ? "one value" : "two values, for the target and for the golden dump"));
  }
  std::vector<int> sizes;
  for (const std::string& text : texts) {
    const auto value = whole_number<int>(text);
    if (!value) throw UsageError(fmt::format("{} {}: not a valid size", option, display(text)));
    sizes.push_back(*value);
  }
  return sizes;
}

/// The options that say how a model was split.
class RankMergeOptions {
 public:
  void declare(OptionList& options) {
    const auto grouped = [](Option option) { option.group("Ranks of one model merged into one graph"); };
    grouped(
        options.add("--rank_size=N", rank_size_, "Merge this number of ranks in -tp (second value: in -gp)")
            .details("With --tp and --pp the ranks are merged into one model.\n"
                     "The folder must contain only <rank0>, <rank1> and so on (or <step> folders of such).\n"
                     "With -gp every option here but the last takes two values, for -tp and -gp; the merged "
                     "models are compared, however each was split.")
            .values(1, 2));
    grouped(options.add("--tp=N", tp_, "Size of tensor parallelism").values(1, 2));
    grouped(options.add("--pp=N", pp_, "Number of pipeline stages").values(1, 2));
    grouped(options.add("--vpp=N", vpp_, "Number of model chunks per stage").values(1, 2).default_text("1"));
    grouped(options
                .add("--order=NAMES", order_,
                     "Order of the parallel dimensions, that of neighbouring ranks first")
                .details("It defines the groups where the communication in the dump does not.")
                .values(1, 2)
                .default_text(ParallelPlan().order));
    grouped(options
                .add("--file_type", file_type_,
                     "db; json: the merged model as a dump; vis: the files of releases 8.x")
                .details("<json> is for a single run and goes to <stepN/rankN> of the output folder.")
                .one_of({"db", "json", "vis"}));
  }

  /// Are ranks to be merged?
  bool given() const { return !rank_size_.empty() || !tp_.empty() || !pp_.empty(); }
  /// One plan a side: the target's first. UsageError for values that are missing, or no numbers.
  std::vector<ParallelPlan> sides(std::size_t count) const {
    for (const auto& [name, texts] :
         {std::pair("--rank_size", &rank_size_), {"--tp", &tp_}, {"--pp", &pp_}}) {
      if (texts->empty())
        throw UsageError(fmt::format("{} is missing: ranks are merged by --rank_size, --tp and --pp", name));
    }
    const std::vector<int> rank_sizes = sizes_of("--rank_size", rank_size_, count);
    const std::vector<int> tps = sizes_of("--tp", tp_, count);
    const std::vector<int> pps = sizes_of("--pp", pp_, count);
    const std::vector<int> vpps = sizes_of("--vpp", vpp_, count);
    if (!order_.empty() && order_.size() != count) throw UsageError("--order needs a value for each side");
    std::vector<ParallelPlan> plans;
    for (std::size_t i = 0; i < count; ++i) {
      ParallelPlan& plan = plans.emplace_back();
      plan.rank_size = rank_sizes[i];
      plan.tp = tps[i];
      plan.pp = pps[i];
      if (!vpps.empty()) plan.vpp = vpps[i];
      if (!order_.empty()) plan.order = order_[i];
    }
    return plans;
  }

  /// Is the merged model asked for as JSON files?
  bool as_json() const { return file_type_ == "json"; }
  /// Are the files of releases 8.x asked for?
  bool as_vis() const { return file_type_ == "vis"; }

 private:
  std::vector<std::string> rank_size_;
  std::vector<std::string> tp_;
  std::vector<std::string> pp_;
  std::vector<std::string> vpp_;
  std::vector<std::string> order_;
  std::string file_type_ = "db";
};

/// Reads `parallel_merge`: how the model of each side was split.
class MergeRequest {
 public:
  MergeRequest(const nlohmann::json& json, const std::string& file) : json_(json), file_(file) {
    if (!json.is_object()) refuse("must be an object with the sizes of npu, and of bench");
  }

  ParallelPlan plan(const std::string& side) const {
    const auto found = json_.find(side);
    if (found == json_.end() || !found->is_object())
      refuse(fmt::format("has no object {}, with rank_size, tp and pp", side));
    ParallelPlan plan;
    plan.rank_size = size(*found, side, "rank_size");
    plan.tp = size(*found, side, "tp");
    plan.pp = size(*found, side, "pp");
    if (has(*found, "vpp")) plan.vpp = size(*found, side, "vpp");
    if (!has(*found, "order")) return plan;
    const nlohmann::json& order = (*found)["order"];
    if (!order.is_string()) refuse(fmt::format("{}.order must be text", side));
    plan.order = order.get<std::string>();
    return plan;
  }

 private:
  static bool has(const nlohmann::json& side, const char* key) {
    const auto found = side.find(key);
    return found != side.end() && !found->is_null();
  }

  int size(const nlohmann::json& side, const std::string& name, const char* key) const {
    constexpr std::int64_t kMost = 1'000'000'000;
    if (!has(side, key)) refuse(fmt::format("{}.{} is missing", name, key));
    const nlohmann::json& value = side[key];
    // The JSON library reads a number beyond the signed range as a negative one.
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > kMost)
      refuse(fmt::format("{}.{} is not a valid size", name, key));
    return value.get<int>();
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw FormatError(display(file_), fmt::format("parallel_merge {}", why));
  }

  const nlohmann::json& json_;
  const std::string& file_;
};

class GraphCommand final : public Command {
 public:
  explicit GraphCommand(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override {
    return name_ == kNameOfToday ? "Write the model of a dump as a graph for TensorBoard"
                                 : "The same, by the name of releases 8.x";
  }

  void declare(OptionList& options) override {
    Option target = options
                        .add("-tp,--target_path=DIR", options_.target,
                             "Folder of a rank (with construct.json and dump.json), of ranks or of steps")
                        .details(
                            "Ranks are <rank0>, <rank1> and so on, steps <step0> and so on.\n"
                            "A single rank counts as rank 0 of step 0.");
    const Option golden = options.add("-gp,--golden_path=DIR", options_.golden,
                                      "Golden dump to compare with: a folder of the same kind");
    const Option request =
        options.add("-i,--compare_path=FILE", request_, "compare.json of releases 8.x, which names both")
            .details(
                "It is the request of the command `graph` of releases 8.x: <npu_path> in place of -tp, "
                "<bench_path> in place of -gp, <is_print_compare_log> in place of -tensor_log (but true "
                "where it is missing), and <parallel_merge> in place of the options that merge ranks: an "
                "object with <npu> (and <bench> with a <bench_path>), each with <rank_size>, <tp>, <pp> and "
                "optionally <vpp> and <order>.")
            .excludes({target, golden}, "-i names both dumps");
    target.required({request}).once();
    options.add("-o,--output_path=DIR", options_.output, "Folder for the result")
        .details("It is created where missing.")
        .required();
    options
        .add_flag("-oc,--overflow_check", options_.overflow_check,
                  "Mark nodes with NaN, Inf or a jump of the norm: medium, high, critical")
        .details(
            "`critical`: NaN or Inf in the outputs only; `high`: in inputs and outputs, or a norm that grows "
            "more than a hundredfold; `medium`: in the inputs only.\n"
            "Values that an operation leaves undefined are ignored.");
    options.add_flag("-fm,--fuzzy_match", fuzzy_, "Pair the operations of a module by call order")
        .details(
            "Modules pair by their names, and the operations directly below two partners in the order of "
            "their calls, whatever their numbers.\n"
            "If one side calls an operation more often, a warning says so.");
    layers_ = options
                  .add("-lm,--layer_mapping[=FILE]", mapping_file_,
                       "Pair modules by layer, with the layer mapping in this YAML file")
                  .details(
                      "The file is as for `msprobe-compare`(1).\n"
                      "Dumps of different frameworks can only be compared this way.");
    options
        .add_flag("-tensor_log,--is_print_compare_log", options_.pair.print_rows,
                  "Log one line for each pair of tensors")
        .details("It needs dumps with tensors.");
    options
        .add_flag("-cs,--complete_stack", complete_stack_,
                  "With --file_type vis: full call stacks instead of the most relevant line")
        .details(
            "Without it a module has the line that calls it by name, an operation the line after "
            "its wrapper.\n"
            "Databases always have full stacks; with them the option is a warning.");
    options
        .add_flag("-progress_log,--is_print_progress_log", progress_log_,
                  "Print progress lines on standard output")
        .details("There is one line per percent, for programs that show it.");
    merge_.declare(options);
    options.add_flag("--python-rules", python_rules_, "Write the values and colours of the Python tool 26.x")
        .details("It has no effect on merged ranks and with `--file_type vis`.");
  }

  Outcome run(const Context& context) override {
    if (!request_.empty()) take_request();
    if (python_rules_ && (merges() || merge_.as_vis())) {
      report_without_effect(name(), "--python-rules",
                            merges() ? " on merged ranks" : " with --file_type vis");
    } else if (python_rules_) {
      options_.data.python_values = true;
      options_.pair.python_values = true;
      options_.pair.python = measuring::python_node_rules();
      options_.origins = false;
    }
    if (merge_.as_vis()) choose_release8();
    choose_pairing();
    if (complete_stack_ && !merge_.as_vis())
      log_warning(
          "-cs has no effect: a database always has full call stacks, only --file_type vis shortens them");
    if (merge_.as_json() && !merges())
      log_warning("--file_type json is for merged ranks (--rank_size, --tp, --pp); writing a database");
    GraphProgress progress{context.progress, {}};
    double told = 0;
    if (progress_log_) {
      progress.tell = [&](double percent) {
        if (std::floor(percent) <= told) return;
        told = std::floor(percent);
        print_progress(told, true, {});
      };
    }
    const GraphResult result = merges() ? merge(progress) : build_graph(options_, progress);
    if (progress_log_) print_progress(100, false, result.problems);
    report(result);
    return result.problems.empty() ? Outcome::clean : Outcome::failure;
  }

 private:
  static constexpr std::string_view kNameOfToday = "graph_visualize";

  /// Reads compare.json of the releases 8.x.
  void take_request() {
    const pairing::RequestFile request(request_);
    // A null means the same as a missing key.
    const auto path_at = [&](const char* key) {
      const auto found = request.json().find(key);
      return found != request.json().end() && found->is_null() ? std::string() : request.text(key, false);
    };
    options_.target = path_at("npu_path");
    if (options_.target.empty()) throw FormatError(display(request_), "Missing npu_path");
    options_.golden = path_at("bench_path");
    const bool print_rows = request.flag("is_print_compare_log", true);
    if (!options_.golden.empty()) options_.pair.print_rows |= print_rows;
    const auto merge = request.json().find("parallel_merge");
    if (merge == request.json().end() || merge->is_null()) return;
    const MergeRequest sides(*merge, request_);
    plans_.push_back(sides.plan("npu"));
    if (!options_.golden.empty()) plans_.push_back(sides.plan("bench"));
    if (merge_.given())
      throw UsageError(
          "parallel_merge of compare.json says how the model was split: leave out --rank_size, --tp and "
          "--pp");
  }

  bool merges() const { return merge_.given() || !plans_.empty(); }

  GraphResult merge(const GraphProgress& progress) const {
    const bool compared = !options_.golden.empty();
    if (compared && merge_.as_json()) throw UsageError("--file_type json is for a single run: leave out -gp");
    if (compared && layers_.given())
      throw UsageError("-lm is not for merged ranks: their operations pair by call order");
    const std::vector<ParallelPlan> plans = plans_.empty() ? merge_.sides(compared ? 2 : 1) : plans_;
    return build_merged(options_, plans, merge_.as_json(), progress);
  }

  /// The files of releases 8.x.
  void choose_release8() {
    if (merges()) throw UsageError("--file_type vis is for single ranks: merged ranks go into a database");
    options_.as_vis = true;
    options_.whole_stacks = complete_stack_;
    options_.data.as_release8 = true;
    options_.pair.as_release8 = true;
  }

  void choose_pairing() {
    PairOptions& pair = options_.pair;
    const char* idle = fuzzy_ ? "-fm" : layers_.given() ? "-lm" : pair.print_rows ? "-tensor_log" : nullptr;
    if (idle != nullptr && options_.golden.empty())
      throw UsageError(fmt::format("{} is for two runs: name the golden dump with -gp", idle));
    if (fuzzy_ && layers_.given()) throw UsageError("-fm and -lm cannot be combined");
    if (options_.golden.empty()) return;
    if (fuzzy_) {
      pair.pairing = NodePairing::calls;
    } else if (layers_.given()) {
      pair.pairing = NodePairing::layers;
      if (!mapping_file_.empty()) pair.layers = pairing::read_layer_mapping(*open_file(mapping_file_));
    }
  }

  static void report(const GraphResult& result) {
    for (const std::string& warning : result.warnings) log_warning(warning);
    const std::size_t shown = std::min(result.unconnected.size(), kShownWarnings);
    for (std::size_t i = 0; i < shown; ++i) log_warning(result.unconnected[i]);
    if (result.unconnected.size() > shown)
      log_warning(
          fmt::format("{} more nodes are unconnected", human_count(result.unconnected.size() - shown)));
    for (const std::string& problem : result.problems) log_error(problem);
    if (result.file.empty()) return;
    const std::string ranks = result.ranks == 1 ? "" : fmt::format(" of {} ranks", human_count(result.ranks));
    std::string told = fmt::format("{} nodes{}", human_count(result.nodes), ranks);
    if (result.tally) {
      for (const std::string& line : result.tally->lines()) told += "\n  " + line;
    }
    log_info(told + "\n  written: " + display(result.file));
  }

  std::string_view name_;
  std::string request_;
  GraphOptions options_;
  bool complete_stack_ = false;
  bool fuzzy_ = false;
  Option layers_;
  std::string mapping_file_;
  RankMergeOptions merge_;
  std::vector<ParallelPlan> plans_;  // that compare.json names
  bool progress_log_ = false;
  bool python_rules_ = false;
};

}  // namespace

std::unique_ptr<Command> make_graph_visualize() {
  return std::make_unique<GraphCommand>("graph_visualize");
}

std::unique_ptr<Command> make_graph() {
  return std::make_unique<GraphCommand>("graph");
}

}  // namespace msprobe::graph
