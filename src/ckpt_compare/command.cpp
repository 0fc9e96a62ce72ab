// SPDX-License-Identifier: Apache-2.0
#include "support/command.hpp"
#include "checkpoint/compare.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/team.hpp"

namespace msprobe::ckpt_compare {
namespace {

class CkptCompareCommand final : public Command {
 public:
  std::string_view name() const override { return "ckpt_compare"; }
  std::string_view summary() const override { return "Compare the weights of two checkpoints of any layout"; }

  void declare(OptionList& options) override {
    options.add_pair(options_.first, options_.second, "PATH", "two checkpoints",
                     "Checkpoints: folders, rank files or files of tensors");
    options.add("-o,--output_path=FILE", options_.output, "Result file (JSON), or - for standard output")
        .details("Missing folders are created.");
    options
        .add("--details=FILE", options_.details,
             "Also write all results of each parameter to this .csv, .xlsx, .json or .jsonl")
        .details("It includes parameters of one side only; the name's ending gives the format.");
    options
        .add("--tolerance=PART", options_.tolerance,
             "Relative l2 difference up to which parameters are close")
        .details(
            "It is relative to the norm of the second one. Integers, packed words of quantized tensors and "
            "their scales in powers of two are equal or different.")
        .not_negative();
    options
        .add("--adapter=FOLDER", options_.adapter,
             "Add this LoRA adapter to the first checkpoint before comparing")
        .details(
            "A folder as PEFT saves it, with <adapter_config.json>: the base model and its adapter are "
            "compared with the merged model. Other kinds of adapters, and modules that the checkpoint does "
            "not have, are an error.");
    options
        .add("--third=PATH", options_.third,
             "Report parameters of the second that average the first and this one")
        .details(
            "Merged models have such parameters, and so do weights that were averaged over a training. "
            "Parameters are found by the names of the first checkpoint, and quantized ones are left out.");
    gate_.declare(options, "parameters", {"different", "missing", "unequal", "never"})
        .details(
            "`different`: a parameter is not close, has another shape, has copies inside a checkpoint that "
            "differ, or is on one side only, unless it is a buffer that is computed from the configuration "
            "(<inv_freq>, <position_ids>, masks, state of TransformerEngine); `missing`: also if such a "
            "buffer is on one side only; `unequal`: also if one is not the same bit for bit.\n"
            "Two checkpoints without a common parameter, or whose common parameters hold no element, end "
            "with status 2 at any level, `never` too: comparing nothing is not equality. A --name-map that "
            "matches no name ends with 2 at a gate.");
    options.add("--name-map=FILE", options_.name_map, "YAML file of names in place of the built-in map")
        .details(
            "It is a list of rules with <to>, <from> (a name or several) and <join> (<rows>, <query_groups> "
            "or <fused_query_groups>); words in braces stand for one component each.");
    options
        .add_flag("--optimizer", options_.load.optimizer, "Compare optimizer, scheduler and random state too")
        .details("In Megatron's rank files it is compared rank by rank, so both layouts must be the same.");
    options
        .add_flag("--allow-partial", options_.load.allow_partial,
                  "Continue if rank files are missing or broken")
        .details("Parameters with a part in such files are not comparable, and the exit status is 2.");
    options.add_overwrite(options_.existing).details("Without it they are an error before anything is read.");
  }

  bool shares_work() const override { return true; }

  Outcome run(const Context& context) override {
    const checkpoint::CheckpointReport report = checkpoint::compare(options_, context.progress);
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
    bool findings = report.any_different();
    if (gate_.level() == "missing") findings = findings || report.any_missing();
    if (gate_.level() == "unequal") findings = report.any_unequal() || report.any_missing();
    return gate_.end(findings, report.coverage(gate_.level() == "unequal"), report.not_judged);
  }

 private:
  checkpoint::CheckpointOptions options_;
  Gate gate_;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<CkptCompareCommand>();
}

}  // namespace msprobe::ckpt_compare
