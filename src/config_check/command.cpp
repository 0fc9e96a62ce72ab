// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "archive/zip_reader.hpp"
#include "checkpoint/compare.hpp"
#include "config_check/collect.hpp"
#include "config_check/compare_packs.hpp"
#include "config_check/summary.hpp"
#include "config_check/verl.hpp"
#include "report/format_option.hpp"
#include "support/byte_source.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_folder.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

enum class ConfigInput { pack, checkpoint };

bool has_tensors(const std::shared_ptr<const ByteSource>& file) {
  try {
    archive::ZipLimits limits;
    limits.allow_twins = true;
    const archive::ZipReader zip(file, limits);
    return std::ranges::any_of(
        zip.entries(), [](const archive::ZipEntry& entry) { return entry.name.ends_with("/data.pkl"); });
  } catch (const FormatError&) {
    return false;  // the reader of packs will report the fault
  }
}

/// The kind of the path, judged by its content. IoError if it does not exist.
ConfigInput kind_of(const std::string& path) {
  if (is_folder(path)) return ConfigInput::checkpoint;
  const auto file = open_file(path);
  if (first_bytes(*file, 2) == "PK") return has_tensors(file) ? ConfigInput::checkpoint : ConfigInput::pack;
  return path.ends_with("zip") ? ConfigInput::pack : ConfigInput::checkpoint;
}

class ConfigCheckCommand final : public Command {
 public:
  std::string_view name() const override { return "config_check"; }
  std::string_view summary() const override {
    return "Record the configuration of a run, and compare two runs";
  }

  void declare(OptionList& options) override {
    dump_ = options
                .add("-d,--dump=FILE", files_,
                     "Collect a pack; hyper-parameters are read from these scripts and YAML files")
                .any_number_of_values(0);
    compare_ = options.add("-c,--compare=PATH", pair_, "Compare two packs, the reference first")
                   .details(
                       "Packs and checkpoints are recognized by their contents.\n"
                       "Two checkpoints are compared as `msprobe-ckpt_compare`(1) does, with "
                       "<./ckpt_similarity.json> as the default of -o.")
                   .values(2, 2);
    verl_compare_ = options
                        .add("-vc,--verl-compare=FILE", logs_,
                             "Compare the configurations in two verl logs, that of the NPU first")
                        .details("They are <.log> or <.txt> files.")
                        .values(2, 2);
    verl_verify_ =
        options
            .add("-vv,--verl-verify=FILE", verified_,
                 "Check the configuration in a verl log (last), optionally against a YAML file (first)")
            .details(
                "The first file may also be <.json>.\n"
                "-vv means this option here; for more messages use `-v -v`.")
            .any_number_of_values(1);
    slime_compare_ = options
                         .add("-sc,--slime-compare=FILE", logs_,
                              "Compare the arguments in two slime logs, that of the NPU first")
                         .details("They are <.log> or <.txt> files.")
                         .values(2, 2);
    options.require_one_of({dump_, compare_, verl_compare_, verl_verify_, slime_compare_});
    options
        .add("-o,--output=PATH", output_,
             "Folder for the results, or the pack with -d; - for standard output")
        .details(
            "The default is <./config_check_pack.zip> with -d, <./config_check_result> with -c, "
            "<./verl_param_compare_result>, <./slime_param_compare_result> or <./verl_param_verify_result> "
            "else.\n"
            "With -c, `-` writes all rows to standard output as jsonl, and no file.");
    options.add_overwrite(existing_)
        .details(
            "That is, the pack that -d writes, and the result of two checkpoints. Results in a "
            "folder replace those of an earlier run in any case.")
        .excludes({verl_compare_, verl_verify_, slime_compare_});
    report::add_formats(options, formats_)
        .details("The default is `xlsx` for packs, `csv` for verl and slime.")
        .excludes({dump_});
    gate_.declare(options, "keys", {"error", "warning", "never"})
        .details(
            "A section in one pack only is an error, and so is a verl parameter that differs.\n"
            "A pack or a file of it that holds nothing, a tensor none of whose statistics is a number, and "
            "logs "
            "without a parameter exit with 2.")
        .excludes({dump_});
    options
        .add_flag("--all-packages", all_packages_,
                  "With -c: also compare packages that are not in the tables, as warnings")
        .details("A version that differs only after a plus sign is then a warning, too.")
        .needs(compare_);
    options
        .add_flag("--env-table-only", env_table_only_, "With -d: pack only the variables that are compared")
        .needs(dump_);
    options
        .add("--python=FILE", python_,
             "With -d: list the packages of this interpreter; default: the one on the PATH")
        .details(
            "That is the first `python3` or `python` there.\n"
            "It is not run: the packages are read from the files below it.")
        .needs(dump_);
    options.add("--tables=FILE", tables_, "YAML file that adds variables, packages, names and secrets")
        .details(
            "Its keys are `npu_marks`, `environment`, `numerics`, `no_numerics`, `packages`, `aliases`, "
            "`secrets` and `verl`.\n"
            "Their entries are added to the built-in ones; a key that ends in an exclamation mark replaces "
            "the built-in table.");
  }

  Outcome run(const Context& context) override {
    if (output_ == "-" && !compare_.given()) throw UsageError("-o - is for -c only");
    const Tables tables = tables_.empty() ? default_tables() : load_tables(tables_);
    if (dump_.given()) return run_collect(tables);
    if (compare_.given()) return run_compare(tables, context);
    return run_verl(tables, context);
  }

 private:
  std::vector<report::Format> formats(report::Format usual) const {
    return formats_.empty() ? std::vector<report::Format>{usual} : formats_;
  }

  Outcome run_collect(const Tables& tables) const {
    CollectOptions options;
    for (const std::string& file : files_) {
      if (!file.empty()) options.files.push_back(file);  // the option without a value gives an empty text
    }
    if (!output_.empty()) options.output = output_;
    options.existing = existing_;
    options.python = python_;
    options.only_table = env_table_only_;
    options.variables = environ;
    const CollectResult result = collect(options, tables, [](const char* name) { return std::getenv(name); });
    for (const std::string& warning : result.warnings) log_warning(warning);
    for (const std::string& failure : result.failures) log_error(failure);
    log_info(render_collection(result));
    return result.failures.empty() ? Outcome::clean : Outcome::failure;
  }

  Outcome run_compare(const Tables& tables, const Context& context) const {
    const ConfigInput first = kind_of(pair_[0]);
    const ConfigInput second = kind_of(pair_[1]);
    if (first != second) {
      throw UsageError(
          "-c compares two packs or two checkpoints: " + display(pair_[first == ConfigInput::pack ? 0 : 1]) +
          " is a pack, " + display(pair_[first == ConfigInput::pack ? 1 : 0]) + " is not");
    }
    if (first == ConfigInput::checkpoint) return run_checkpoints(context);
    ComparePacksOptions options;
    options.bench = pair_[0];
    options.cmp = pair_[1];
    options.all_packages = all_packages_;
    if (!output_.empty()) options.output = output_;
    const bool piped = options.output == "-";
    options.formats = formats(piped ? report::Format::jsonl : report::Format::xlsx);
    if (piped && options.formats != std::vector<report::Format>{report::Format::jsonl})
      throw UsageError("-o - writes jsonl only");
    if (!piped) check_output_folder(options.output);
    const PackComparison comparison = compare_packs(options, tables);
    bool failed = false;
    for (const std::string& warning : comparison.warnings) log_warning(warning);
    for (const SheetSection& section : comparison.sections) {
      failed = failed || section.unreadable;
      if (section.unreadable) {
        for (const std::string& reason : section.reasons) log_error(reason);
      }
    }
    const RowTable summary = summary_table(comparison);
    const std::size_t warnings = std::ranges::count_if(comparison.sections, [](const SheetSection& section) {
      return section.table && section.table->warnings() != 0;
    });
    // Compared with an empty pack everything is missing, which says nothing about the other pack.
    const bool findings =
        comparison.empty.empty() && (summary.errors() != 0 || (gate_.level() == "warning" && warnings != 0));
    log_info(render_packs(comparison, options, context.color));
    const Outcome outcome = gate_.end(findings, comparison.coverage());
    return failed ? Outcome::failure : outcome;
  }

  /// Compares checkpoints as `ckpt_compare` does, because the Python tool offers it under this command, too.
  Outcome run_checkpoints(const Context& context) const {
    if (!formats_.empty() || all_packages_)
      throw UsageError("--format and --all-packages are for packs only");
    checkpoint::CheckpointOptions options;
    options.first = pair_[0];
    options.second = pair_[1];
    if (!output_.empty()) options.output = output_;
    options.existing = existing_;
    const checkpoint::CheckpointReport report = checkpoint::compare(options, context.progress);
    for (const std::string& warning : report.warnings) log_warning(warning);
    log_info(checkpoint::render_summary(report, context.color));
    if (const std::string reason = report.nothing_in_common(); !reason.empty()) {
      log_error(reason);
      return Outcome::failure;
    }
    if (report.any_unreadable()) return Outcome::failure;
    const bool findings = report.any_different() ||
                          (gate_.level() == "warning" && (report.any_unequal() || report.any_missing()));
    return gate_.end(findings, report.coverage(), report.not_judged);
  }

  Outcome run_verl(const Tables& tables, const Context& context) const {
    VerlOptions options;
    options.formats = formats(report::Format::csv);
    options.output = !output_.empty()         ? output_
                     : verl_compare_.given()  ? "./verl_param_compare_result"
                     : slime_compare_.given() ? "./slime_param_compare_result"
                                              : "./verl_param_verify_result";
    check_output_folder(options.output);
    const VerlResult result = verl_compare_.given()    ? compare_verl(logs_[0], logs_[1], options)
                              : slime_compare_.given() ? compare_slime(logs_[0], logs_[1], options)
                                                       : verify_verl(verified_, tables, options);
    for (const std::string& warning : result.warnings) log_warning(warning);
    log_info(render_verl(result, context.color));
    return gate_.end(result.table->errors() != 0, result.coverage);
  }

  Option dump_;
  Option compare_;
  Option verl_compare_;
  Option verl_verify_;
  Option slime_compare_;
  std::vector<std::string> files_;
  std::vector<std::string> pair_;
  std::vector<std::string> logs_;
  std::vector<std::string> verified_;
  std::string output_;
  Existing existing_ = Existing::refuse;
  std::vector<report::Format> formats_;
  Gate gate_;
  bool all_packages_ = false;
  bool env_table_only_ = false;
  std::string python_;
  std::string tables_;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<ConfigCheckCommand>();
}

}  // namespace msprobe::config_check
