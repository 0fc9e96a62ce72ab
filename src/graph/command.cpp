// SPDX-License-Identifier: Apache-2.0
#include "graph/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/build.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

constexpr std::size_t kShownWarnings = 5;

class GraphCommand final : public Command {
 public:
  std::string_view name() const override { return "graph_visualize"; }
  std::string_view summary() const override { return "Write the model of a dump as a graph for TensorBoard"; }

  std::vector<std::pair<std::string, std::string>> aliases() const override {
    // The last three are no options yet; known by their names they are refused by them, not letter by letter.
    return {{"-tp", "--target_path"},
            {"-oc", "--overflow_check"},
            {"-gp", "--golden_path"},
            {"-lm", "--layer_mapping"},
            {"-fm", "--fuzzy_match"}};
  }

  void declare(OptionList& options) override {
    options.add("--target_path", options_.target, "Folder of one rank, with construct.json and dump.json")
        .argument("DIR");
    options.add("-o,--output_path", options_.output, "Folder for the result").argument("DIR");
    options.add_flag("--overflow_check", options_.overflow_check,
                     "Mark nodes with NaN, Inf or a jump of the norm: medium, high, critical");
    options.add_flag("--python-rules", python_rules_, "The rows of the Python tool 26.x, mistakes included");
  }

  Outcome run(const Context&) override {
    if (options_.target.empty()) throw UsageError("-tp/--target_path is required");
    if (options_.output.empty()) throw UsageError("-o/--output_path is required");
    if (python_rules_) {
      options_.tree = {.lose_unconnected = true, .gradients_in_first_step = true};
      options_.data = {
          .strip_quotes = true, .hide_null = true, .drop_checksums = true, .section_from_name = true};
    }
    const GraphResult result = build_graph(options_);
    for (std::size_t i = 0; i < std::min(result.warnings.size(), kShownWarnings); ++i)
      log_warning(result.warnings[i]);
    if (result.warnings.size() > kShownWarnings) {
      log_warning(fmt::format("{} more nodes are connected to nothing",
                              human_count(result.warnings.size() - kShownWarnings)));
    }
    log_info(fmt::format("{} nodes\n  written: {}", human_count(result.nodes), display(result.file)));
    return Outcome::clean;
  }

 private:
  GraphOptions options_;
  bool python_rules_ = false;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<GraphCommand>();
}

}  // namespace msprobe::graph
