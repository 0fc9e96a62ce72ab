// SPDX-License-Identifier: Apache-2.0
#include "ckpt_compare/command.hpp"

#include "checkpoint/compare.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::ckpt_compare {
namespace {

class CkptCompareCommand final : public Command {
 public:
  std::string_view name() const override { return "ckpt_compare"; }
  std::string_view summary() const override { return "Compare the weights of two checkpoints of any layout"; }

  void declare(OptionList& options) override {
    options.add("path1", options_.first, "Checkpoints: folders, rank files or files of tensors")
        .argument("PATH1");
    options.add("path2", options_.second, "The second one").argument("PATH2");
    options.add("-o,--output_path", options_.output, "Result file (JSON), or - for standard output")
        .argument("FILE")
        .show_default();
    options
        .add("--details", options_.details,
             "Also write all that is known of each parameter to this .csv, .xlsx, .json or .jsonl")
        .argument("FILE");
    options.add("--tolerance", options_.tolerance, "Relative l2 difference up to which parameters are close")
        .not_negative()
        .show_default();
    options.add("--fail-on", fail_on_, "Exit with 1 if there is: different, missing, unequal, never")
        .one_of({"different", "missing", "unequal", "never"})
        .show_default();
    options.add("--name-map", options_.name_map, "YAML file of names in place of the built-in map")
        .argument("FILE");
    options.add_flag("--optimizer", options_.load.optimizer,
                     "Compare optimizer, scheduler and random state too");
    options.add_flag("--allow-partial", options_.load.allow_partial,
                     "Go on where rank files are missing or broken");
    options.add_flag("--overwrite", options_.overwrite, "Replace result files that exist");
  }

  bool shares_work() const override { return true; }

  Outcome run(const Context& context) override {
    if (options_.second.empty()) {
      throw UsageError(options_.first.empty()
                           ? "two checkpoints are needed"
                           : "'" + display(options_.first) + "' alone: two checkpoints are needed");
    }
    const checkpoint::CompareReport report = checkpoint::compare(options_, context.progress);
    if (!team().is_root()) return Outcome::clean;
    for (const std::string& warning : report.warnings) log_warning(warning);
    std::string text = checkpoint::render_summary(report, context.color);
    text.pop_back();
    log_info(text);
    if (const std::string reason = report.nothing_in_common(); !reason.empty()) {
      log_error(reason);
      return Outcome::failure;
    }
    if (report.any_unreadable()) return Outcome::failure;
    bool findings = false;
    if (fail_on_ != "never") findings = report.any_different();
    if (fail_on_ == "missing") findings = findings || report.any_missing();
    if (fail_on_ == "unequal") findings = report.any_unequal() || report.any_missing();
    return findings ? Outcome::findings : Outcome::clean;
  }

 private:
  checkpoint::CompareOptions options_;
  std::string fail_on_ = "never";
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<CkptCompareCommand>();
}

}  // namespace msprobe::ckpt_compare
