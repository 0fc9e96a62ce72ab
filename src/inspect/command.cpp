// SPDX-License-Identifier: Apache-2.0
#include "inspect/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "inspect/facts.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

/// What was typed.
struct Typed {
  std::vector<std::string> paths;
  bool json = false;
  Options options;
  std::string fail_on = "never";
};

bool has_rating(const PathFacts& facts, Rating least) {
  if (!facts.file) return false;
  return std::any_of(facts.file->globals.begin(), facts.file->globals.end(),
                     [&](const GlobalFacts& global) { return global.rating >= least; });
}

bool has_tensor_files(const PathFacts& facts) {
  if (!facts.tree || facts.tree->kind == "file") return false;
  return std::any_of(facts.tree->steps.begin(), facts.tree->steps.end(), [](const StepFacts& step) {
    return std::any_of(step.ranks.begin(), step.ranks.end(),
                       [](const RankFacts& rank) { return rank.files > 0; });
  });
}

class InspectCommand final : public Command {
 public:
  std::string_view name() const override { return "inspect"; }
  std::string_view summary() const override {
    return "Tell what is in a tensor file, a checkpoint or a dump";
  }

  void declare(OptionList& options) override {
    options
        .add("paths", typed_.paths,
             "Tensor files (.pt, .npy, .npz, .safetensors), checkpoints, pickles, and dumps: "
             "dump.json, rank, step or dump folders")
        .argument("PATH")
        .take_all();
    options.add_flag("--json", typed_.json, "One JSON document; several paths give an array");
    options.add_flag("--statistics", typed_.options.all_statistics,
                     "Statistics of every tensor of a file that holds several");
    options.add("--first", typed_.options.first, "How many elements of a tensor to show")
        .argument("N")
        .in_range(0, 1'000'000)
        .show_default();
    options
        .add("--fail-on", typed_.fail_on,
             "Exit with 1 if a pickle names globals that are: dangerous, unknown (or worse), never; "
             "with 2 if it cannot be followed to its end")
        .one_of({"dangerous", "unknown", "never"})
        .show_default();
  }

  Outcome run(const Context& context) override {
    if (typed_.paths.empty()) throw UsageError("no path given", "try 'msprobe inspect --help'");
    // The result goes to stdout; what was decided about colour was decided for stderr.
    const bool color = context.color && report::is_terminal(STDOUT_FILENO);
    bool failed = false;
    bool findings = false;
    bool listens = true;
    std::vector<PathFacts> all;
    for (const std::string& path : typed_.paths) {
      PathFacts facts = inspect_path(path, typed_.options);
      // The pickles of a folder are many and were not rated: silence would be a promise.
      if (typed_.fail_on != "never" && (facts.checkpoint || has_tensor_files(facts))) {
        facts.problems.push_back(fmt::format("--fail-on rates the pickles of files: name those of the {}",
                                             facts.checkpoint ? "checkpoint" : "dump"));
      }
      failed = failed || facts.failed();
      if (typed_.fail_on != "never") {
        findings =
            findings || has_rating(facts, typed_.fail_on == "unknown" ? Rating::unknown : Rating::dangerous);
      }
      for (const std::string& problem : facts.problems) log_error(display(path) + ": " + display(problem));
      if (typed_.json) {
        all.push_back(std::move(facts));
      } else if (listens) {
        listens = print(to_text(facts, color));
      }
    }
    if (typed_.json) {
      to_json(all, [&](const std::string& piece) { listens = listens && print(piece); });
    }
    if (failed) return Outcome::failure;
    return findings ? Outcome::findings : Outcome::clean;
  }

 private:
  static bool print(const std::string& text) { return write_all(STDOUT_FILENO, text, "standard output"); }

  Typed typed_;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<InspectCommand>();
}

}  // namespace msprobe::inspect
