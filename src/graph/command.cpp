// SPDX-License-Identifier: Apache-2.0
#include "graph/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/build.hpp"
#include "graph/merge/build_merged.hpp"
#include "graph/merge/merge_options.hpp"
#include "graph/request.hpp"
#include "pairing/mapping_file.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

constexpr std::size_t kShownWarnings = 5;

/// Lines for a program that shows how far the work is.
class ProgressLog {
 public:
  /// A line for each percent.
  void tell(double percent) {
    const double whole = std::floor(percent);
    if (whole <= last_) return;
    last_ = whole;
    print(whole, true, {});
  }
  void end(const std::vector<std::string>& problems) { print(100, false, problems); }

 private:
  static void print(double percent, bool running, const std::vector<std::string>& problems) {
    JsonWriter json;
    json.open_object();
    json.member("current_progress", percent);
    json.member("process_running", running);
    json.member("error_msg", problems);
    json.close();
    write_all(STDOUT_FILENO, "PROGRESS: " + json.take() + "\n", "standard output");
  }

  double last_ = 0;
};

class GraphCommand final : public Command {
 public:
  explicit GraphCommand(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override {
    return name_ == kNameOfToday ? "Write the model of a dump as a graph for TensorBoard"
                                 : "The same, by the name of releases 8.x";
  }

  std::vector<std::pair<std::string, std::string>> aliases() const override {
    return {{"-tp", "--target_path"},
            {"-gp", "--golden_path"},
            {"-oc", "--overflow_check"},
            {"-fm", "--fuzzy_match"},
            {"-lm", "--layer_mapping"},
            {"-cs", "--complete_stack"},
            {"-tensor_log", "--is_print_compare_log"},
            {"-progress_log", "--is_print_progress_log"}};
  }

  void declare(OptionList& options) override {
    options
        .add("--target_path", options_.target,
             "Folder of a rank, with construct.json and dump.json, or of ranks or steps")
        .argument("DIR");
    options.add("--golden_path", options_.golden, "Reference to compare with, of the same kind")
        .argument("DIR");
    options.add("-i,--compare_path", request_, "compare.json of releases 8.x, which names both")
        .argument("FILE");
    options.add("-o,--output_path", options_.output, "Folder for the result").argument("DIR");
    options.add_flag("--overflow_check", options_.overflow_check,
                     "Mark nodes with NaN, Inf or a jump of the norm: medium, high, critical");
    options.add_flag("--fuzzy_match", fuzzy_, "Pair the operations of a module in the order of their calls");
    layers_ = options
                  .add("--layer_mapping", mapping_file_,
                       "Pair what stands at one place of the model, places by this YAML file")
                  .argument("FILE")
                  .values(0, 1);
    options.add_flag("--is_print_compare_log", options_.pair.print_rows,
                     "Log one line for each pair of tensors");
    options.add_flag("--complete_stack", complete_stack_,
                     "With --file_type vis: whole call stacks, not the one line that counts");
    options.add_flag("--is_print_progress_log", progress_log_, "Progress as lines on standard output");
    merge_.declare(options);
    options.add_flag("--python-rules", python_rules_, "The rows of the Python tool 26.x, mistakes included");
  }

  Outcome run(const Context& context) override {
    if (!request_.empty()) take_request();
    if (options_.target.empty()) throw UsageError("-tp/--target_path is required");
    if (options_.output.empty()) throw UsageError("-o/--output_path is required");
    if (python_rules_) {
      options_.tree = {.lose_unconnected = true, .gradients_in_first_step = true};
      options_.data = {.strip_quotes = true,
                       .hide_null = true,
                       .drop_checksums = true,
                       .sums_as_is = true,
                       .section_from_name = true};
      options_.edges = {.keywords_only = true};
      options_.config = {.of_first_graph = !merges()};
      options_.pair.traits = python_pair_traits();
      options_.origins = false;
    }
    if (merge_.as_vis()) choose_release8();
    choose_pairing();
    if (complete_stack_ && !merge_.as_vis())
      log_warning("-cs changes nothing: only --file_type vis cuts call stacks, a data base has them whole");
    if (merge_.as_json() && !merges())
      log_warning(
          "--file_type json is for ranks that are merged (--rank_size, --tp, --pp); a data base is written");
    GraphProgress progress{context.progress, {}};
    ProgressLog log;
    if (progress_log_) progress.tell = [&](double percent) { log.tell(percent); };
    const GraphResult result = merges() ? merge(progress) : build_graph(options_, progress);
    if (progress_log_) log.end(result.problems);
    report(result);
    return result.problems.empty() ? Outcome::clean : Outcome::failure;
  }

 private:
  static constexpr std::string_view kNameOfToday = "graph_visualize";

  void take_request() {
    if (!options_.target.empty() || !options_.golden.empty())
      throw UsageError("-i names both dumps: it goes with neither -tp nor -gp");
    const GraphRequest request = read_graph_request(request_);
    options_.target = request.target;
    options_.golden = request.golden;
    if (!request.golden.empty()) options_.pair.print_rows |= request.print_rows;
    plans_ = request.plans;
    if (!plans_.empty() && merge_.given())
      throw UsageError(
          "parallel_merge of compare.json says how the model was split: leave out --rank_size, --tp and "
          "--pp");
  }

  bool merges() const { return merge_.given() || !plans_.empty(); }

  GraphResult merge(const GraphProgress& progress) const {
    const bool compared = !options_.golden.empty();
    if (compared && merge_.as_json()) throw UsageError("--file_type json is for one run: leave out -gp");
    if (compared && !python_rules_ && layers_.given())
      throw UsageError(
          "-lm is not for ranks that are merged: their operations pair in the order of their calls");
    const std::vector<ParallelPlan> plans = plans_.empty() ? merge_.sides(compared ? 2 : 1) : plans_;
    return build_merged(options_, plans, merge_.as_json(), python_rules_, progress);
  }

  /// What is written is what releases 8.x wrote, and so are their rules, if asked for.
  void choose_release8() {
    if (merges())
      throw UsageError("--file_type vis is for single ranks: ranks that are merged go into a data base");
    options_.as_vis = true;
    options_.whole_stacks = complete_stack_;
    options_.data.as_release8 = true;
    options_.pair.as_release8 = true;
    if (!python_rules_) return;
    options_.tree.as_release8 = true;
    options_.edges.as_release8 = true;
    options_.pair.traits.same_arguments = true;
    options_.pair.traits.rank.measure.as_release8 = true;
  }

  void choose_pairing() {
    PairOptions& pair = options_.pair;
    if (!python_rules_) {
      const char* idle = fuzzy_ ? "-fm" : layers_.given() ? "-lm" : pair.print_rows ? "-tensor_log" : nullptr;
      if (idle != nullptr && options_.golden.empty())
        throw UsageError(fmt::format("{} is for two runs: name the reference with -gp", idle));
      if (fuzzy_ && layers_.given()) throw UsageError("-fm and -lm exclude each other");
    }
    if (options_.golden.empty()) return;
    if (fuzzy_) {
      pair.pairing = NodePairing::calls;
    } else if (layers_.given()) {
      pair.pairing = NodePairing::layers;
      if (!mapping_file_.empty()) pair.layers = compare::read_layer_mapping(*open_file(mapping_file_));
    }
  }

  static void report(const GraphResult& result) {
    for (const std::string& warning : result.warnings) log_warning(warning);
    const std::size_t shown = std::min(result.unconnected.size(), kShownWarnings);
    for (std::size_t i = 0; i < shown; ++i) log_warning(result.unconnected[i]);
    if (result.unconnected.size() > shown)
      log_warning(fmt::format("{} more nodes are connected to nothing",
                              human_count(result.unconnected.size() - shown)));
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
  MergeOptions merge_;
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
