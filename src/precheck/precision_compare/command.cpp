// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "precheck/precision_compare/compare.hpp"
#include "precheck/precision_compare/tables.hpp"
#include "report/format_option.hpp"
#include "report/terminal.hpp"
#include "support/byte_source.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/result_name.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

class PrecisionCommand final : public Command {
 public:
  std::string_view name() const override { return "api_precision_compare"; }
  std::string_view summary() const override {
    return "Compare the pre-check results of two devices, row by row";
  }

  void declare(OptionList& options) override {
    options.add("-npu,--npu_csv_path=FILE", device_, "acc_check details file of the device to judge")
        .required()
        .once();
    options.add("-gpu,--gpu_csv_path=FILE", other_, "acc_check details file of the device to judge it by")
        .required()
        .once();
    options.add("-o,--out_path=DIR", output_, "Folder for the results")
        .details("It is created where missing.");
    options
        .add("--release", release_,
             "Release whose criteria apply: 8, 26, or auto (each row by its filled columns)")
        .details(
            "`8` chooses the criterion of an output as releases 8.x do, by lists of operations; `26` as "
            "releases 26.x do, with the benchmark criterion for all floating types.")
        .one_of({"auto", "8", "26"});
    report::add_formats(options, formats_).details("The default is `csv`.");
    options.add_flag("--english", english_, "Columns and reasons in English only")
        .details("The Python tool does not read such files.");
    gate_.declare(options, "operations", {"error", "skip", "never"})
        .details(
            "`skip` also counts what was not judged.\n"
            "Where no operation has a verdict, or an output has no partner, the status is 2.");
    options.add_flag("--python-rules", python_rules_, "Has no effect").manual_only();
    options
        .add("--standards=FILE", standards_, "YAML file with lists and limits to replace the built-in ones")
        .details("Its keys replace the built-in ones; the others stay.");
  }

  Outcome run(const Context& context) override {
    if (python_rules_) report_without_effect(name(), "--python-rules");
    const Standards standards = standards_.empty() ? Standards::built_in() : Standards::load(standards_);
    const std::string& folder = output_;
    const std::string time = claim_time_stamp(folder);
    check_output(folder + "/api_precision_compare_result_" + time + ".csv");

    const DetailsFile device = DetailsFile::read(*open_file(device_));
    const DetailsFile other = DetailsFile::read(*open_file(other_));
    const PrecisionResult result = compare_precision(device, other, standards, chosen_selection());
    for (const std::string& warning : result.warnings) log_warning(warning);
    std::vector<std::string> files;
    for (const report::Format format : formats_) write(result, format, folder, time, files);
    return conclude(result, files, context.color);
  }

 private:
  std::optional<Selection> chosen_selection() const {
    if (release_ == "auto") return std::nullopt;
    return release_ == "8" ? Selection::release_8 : Selection::release_26;
  }

  void write(const PrecisionResult& result, report::Format format, const std::string& folder,
             const std::string& time, std::vector<std::string>& files) const {
    PrecisionLook look;
    look.english = english_;
    look.spelled = format == report::Format::csv;
    report::WriteOptions options;
    options.csv_byte_order_mark = true;  // as the Python tool's, whose columns have Chinese names
    options.csv_line_end = "\r\n";
    options.wrap_lines = true;
    const auto add = [&](const report::Table& table, const char* kind) {
      const std::string path =
          fmt::format("{}/api_precision_compare_{}_{}.{}", folder, kind, time, report::extension(format));
      for (std::string& file : report::write_file(table, format, path, options))
        files.push_back(std::move(file));
    };
    add(*details_table(result, look), "details");
    add(*operations_table(result, look), "result");
  }

  Outcome conclude(const PrecisionResult& result, const std::vector<std::string>& files, bool color) const {
    std::size_t passes = 0;
    std::size_t errors = 0;
    std::size_t skips = 0;
    Coverage coverage;
    std::string worst;
    for (const OperationResult& operation : result.operations) {
      const PythonStatus status = operation.worst();
      passes += status == PythonStatus::pass;
      skips += status == PythonStatus::skip;
      if (status == PythonStatus::skip && operation.unjudged)
        coverage.miss("an output of it has no figure to judge by", operation.name);
      if (status != PythonStatus::error) continue;
      constexpr std::size_t kShown = 10;
      if (++errors <= kShown) {
        worst += "\n  " + report::paint("error", report::Color::red, color) + "  " + display(operation.name);
        if (!operation.reason.empty()) worst += "  " + display(operation.reason);
      }
    }
    std::string text = fmt::format("{} outputs, {} operations: {} pass, ", human_count(result.rows.size()),
                                   human_count(result.operations.size()), human_count(passes));
    text += report::count_text(errors, "error",
                               errors == 0 ? report::Severity::none : report::Severity::error, color);
    text += fmt::format(", {} SKIP", human_count(skips));
    if (result.without_partner != 0) {
      text += fmt::format("; {} {} unmatched", human_count(result.without_partner),
                          result.without_partner == 1 ? "output" : "outputs");
    }
    text += worst;
    if (errors > 10) text += fmt::format("\n  and {} more", human_count(errors - 10));
    for (const std::string& file : files) text += "\n  written: " + display(file);
    log_info(text);
    coverage.compared = passes + errors;
    coverage.explained =
        skips - coverage.missed();  // the pre-check skipped them; the level `skip` reports it
    if (result.without_partner > 0)
      coverage.miss("one of the two files lacks an output", "", result.without_partner);
    return gate_.end(errors != 0 || (gate_.level() == "skip" && skips != 0), coverage);
  }

  std::string device_;
  std::string other_;
  std::string output_ = "./";
  std::string release_ = "auto";
  std::vector<report::Format> formats_ = {report::Format::csv};
  std::string standards_;
  Gate gate_;
  bool english_ = false;
  bool python_rules_ = false;
};

}  // namespace

std::unique_ptr<Command> make_api_precision_compare() {
  return std::make_unique<PrecisionCommand>();
}

}  // namespace msprobe::precheck
