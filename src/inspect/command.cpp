// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "inspect/facts.hpp"
#include "report/terminal.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

Rating rating_of(const PathFacts& facts) {
  const Rating file = facts.file ? facts.file->rating() : Rating::ok;
  return std::max(file, facts.rated ? facts.rated->rating() : Rating::ok);
}

class InspectCommand final : public Command {
 public:
  std::string_view name() const override { return "inspect"; }
  std::string_view summary() const override {
    return "Show what is in a tensor file, a checkpoint or a dump";
  }

  void declare(OptionList& options) override {
    options
        .add("paths=PATH...", paths_,
             "Tensor files (.pt, .npy, .npz, .safetensors), checkpoints, pickles, and dumps: "
             "dump.json, rank, step or dump folders")
        .take_all();
    options.add_flag("--json", json_, "Write one JSON document; an array for several paths")
        .details("NaN and infinities are the texts Nan, inf and -inf.");
    options
        .add_flag("--statistics", options_.all_statistics,
                  "Show statistics of every tensor, also in a file with several")
        .details("Without it they are shown only for a file with a single tensor.");
    options.add("--first=N", options_.first, "How many elements of a tensor to show").in_range(0, 1'000'000);
    gate_
        .declare(options, "files", {"dangerous", "unknown", "never"},
                 "Exit with 1 if a file names something dangerous to load, or unknown (or worse); "
                 "with 2 if it cannot be analyzed to its end")
        .details(
            "The status is also 2 if the effect of a pickle is unknown, so that 0 always means that it names "
            "no such global.\n"
            "Every member of an archive is inspected by its content, whatever its name, also archives in it. "
            "Archives with code (TorchScript, torch.package, torch.export) end with 2.\n"
            "In a folder every file below it is rated, hidden ones too. A file is ok if it was read to its "
            "last "
            "byte as a format that is pure data: tensors, plain pickles, JSON, YAML, texts, templates, "
            "pictures. "
            "Everything else is unknown, whatever its name, or dangerous if what it names is known to run "
            "something. Each file that is not ok has a line. Packed files, and links that lead out of the "
            "folder "
            "(but to the blobs of a Hugging Face cache), are not inspected and end with 2.");
  }

  Outcome run(const Context& context) override {
    if (paths_.empty()) throw UsageError("no path given", "try 'msprobe inspect --help'");
    // The result goes to stdout, but the context decided about colour for stderr.
    const bool color = context.color && report::is_terminal(STDOUT_FILENO);
    bool failed = false;
    bool findings = false;
    bool listens = true;
    std::vector<PathFacts> all;
    Coverage coverage;
    options_.rate = gate_.is_set();
    for (const std::string& path : paths_) {
      PathFacts facts = inspect_path(path, options_);
      failed = failed || facts.failed();
      if (!facts.rated) {
        ++coverage.compared;
      } else if (facts.rated->files == 0) {
        coverage.miss("it holds no file", path);
      } else if (facts.rated->files == facts.rated->empty) {
        coverage.miss("its files are empty", path);
      } else {
        coverage.compared += facts.rated->files - facts.rated->unfinished - facts.rated->empty;
        coverage.explained += facts.rated->empty;
      }
      if (options_.rate)
        findings = findings ||
                   rating_of(facts) >= (gate_.level() == "unknown" ? Rating::unknown : Rating::dangerous);
      for (const std::string& problem : facts.problems) log_error(display(path) + ": " + display(problem));
      for (const std::string& warning : facts.warnings) log_warning(display(path) + ": " + display(warning));
      // The log shows only the first bad tensor; the listing has them all.
      if (facts.file) {
        const auto bad =
            std::ranges::find_if_not(facts.file->tensors, &std::string::empty, &TensorFacts::problem);
        if (bad != facts.file->tensors.end())
          log_error(fmt::format("{}: {}: {}", display(path), display(bad->name), display(bad->problem)));
      }
      if (facts.rated && facts.rated->unfinished > 0) {
        const auto bad =
            std::ranges::find_if_not(facts.rated->listed, &std::string::empty, &RatedFile::problem);
        const std::uint64_t more = facts.rated->unfinished - 1;
        log_error(fmt::format("{}/{}: {}{}", display(path), display(bad->path), display(bad->problem),
                              more == 0 ? "" : fmt::format(" (and {} more files)", human_count(more))));
      }
      if (json_) {
        all.push_back(std::move(facts));
      } else if (listens) {
        listens = print(to_text(facts, color));
      }
    }
    if (json_) {
      to_json(all, [&](const std::string& piece) { listens = listens && print(piece); });
    }
    if (failed && !findings) return Outcome::failure;
    return gate_.end(findings, coverage);
  }

 private:
  static bool print(const std::string& text) { return write_all(STDOUT_FILENO, text, "standard output"); }

  std::vector<std::string> paths_;
  bool json_ = false;
  Options options_;
  Gate gate_;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<InspectCommand>();
}

}  // namespace msprobe::inspect
