// SPDX-License-Identifier: Apache-2.0
#include "precheck/precision_compare/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "precheck/precision_compare/compare.hpp"
#include "precheck/precision_compare/tables.hpp"
#include "report/terminal.hpp"
#include "report/writers.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/result_name.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

/// What was typed.
struct TypedPrecision {
  std::string device;
  std::string other;
  std::string output = "./";
  std::string release = "auto";
  std::vector<std::string> formats;
  std::string standards;
  std::string fail_on = "never";
  bool english = false;
  bool python_rules = false;
};

std::vector<report::Format> formats_of(const std::vector<std::string>& names) {
  std::vector<report::Format> formats;
  for (const std::string& name : names) {
    const auto format = report::format_from_name(name);
    if (!format) throw UsageError("--format: '" + display(name) + "' is none of csv, xlsx, json, jsonl");
    if (std::find(formats.begin(), formats.end(), *format) == formats.end()) formats.push_back(*format);
  }
  if (formats.empty()) formats.push_back(report::Format::csv);
  return formats;
}

PrecisionTraits traits_of(const TypedPrecision& typed) {
  // As the newer release has it, if nobody asks for the older one.
  const Selection selection = typed.release == "8" ? Selection::release_8 : Selection::release_26;
  if (typed.python_rules) return python_precision_traits(selection);
  PrecisionTraits traits;
  if (typed.release != "auto") traits.selection = selection;
  return traits;
}

class PrecisionCommand final : public Command {
 public:
  std::string_view name() const override { return "api_precision_compare"; }
  std::string_view summary() const override {
    return "Judge the pre-checks of one device by those of another";
  }

  std::vector<std::pair<std::string, std::string>> aliases() const override {
    return {{"-npu", "--npu_csv_path"}, {"-gpu", "--gpu_csv_path"}};
  }

  void declare(OptionList& options) override {
    options.add("--npu_csv_path", typed_.device, "Details file of acc_check, of the device that is judged")
        .argument("FILE");
    options.add("--gpu_csv_path", typed_.other, "The same of the device that it is measured by")
        .argument("FILE");
    options.add("-o,--out_path", typed_.output, "Folder for the results").argument("DIR").show_default();
    options
        .add("--release", typed_.release,
             "Whose choice of criteria: 8, 26, or auto, each row by the columns that are filled")
        .one_of({"auto", "8", "26"})
        .show_default();
    options.add("--format", typed_.formats, "Any of csv, xlsx, json, jsonl, separated by commas")
        .commas()
        .suggest({"csv", "xlsx", "json", "jsonl"})
        .argument("LIST");
    options.add_flag("--english", typed_.english, "Columns and reasons in English only");
    options.add("--fail-on", typed_.fail_on, "Exit with 1 if there is: error, skip, never")
        .one_of({"error", "skip", "never"})
        .show_default();
    options.add_flag("--python-rules", typed_.python_rules,
                     "The answer of the Python tool, mistakes included: 26.x unless --release says 8");
    options
        .add("--standards", typed_.standards, "YAML file with lists and limits in place of the built-in ones")
        .argument("FILE");
  }

  Outcome run(const Context& context) override {
    if (typed_.device.empty()) throw UsageError("-npu/--npu_csv_path is required");
    if (typed_.other.empty()) throw UsageError("-gpu/--gpu_csv_path is required");
    if (typed_.python_rules && typed_.english)
      throw UsageError("--python-rules and --english exclude each other");
    const std::vector<report::Format> formats = formats_of(typed_.formats);
    const PrecisionTraits traits = traits_of(typed_);
    const Standards standards =
        typed_.standards.empty() ? Standards::built_in() : Standards::load(typed_.standards);
    const std::string folder = typed_.output.empty() ? "." : typed_.output;
    create_directories(folder);
    const std::string time = time_stamp();
    check_output(folder + "/api_precision_compare_result_" + time + ".csv");

    const DetailsFile device = DetailsFile::read(*open_file(typed_.device));
    const DetailsFile other = DetailsFile::read(*open_file(typed_.other));
    const PrecisionResult result = compare_precision(device, other, standards, traits);
    for (const std::string& warning : result.warnings) log_warning(warning);
    std::vector<std::string> files;
    for (const report::Format format : formats) write(result, traits, format, folder, time, files);
    return conclude(result, files, context.color);
  }

 private:
  void write(const PrecisionResult& result, const PrecisionTraits& traits, report::Format format,
             const std::string& folder, const std::string& time, std::vector<std::string>& files) const {
    PrecisionLook look;
    look.ours = !traits.python_columns;
    look.english = typed_.english;
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
    std::string worst;
    for (const OperationResult& operation : result.operations) {
      const Status status = operation.worst();
      passes += status == Status::pass;
      skips += status == Status::skip;
      if (status != Status::error) continue;
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
      text += fmt::format("; {} {} without partner", human_count(result.without_partner),
                          result.without_partner == 1 ? "output" : "outputs");
    }
    text += worst;
    if (errors > 10) text += fmt::format("\n  and {} more", human_count(errors - 10));
    for (const std::string& file : files) text += "\n  written: " + display(file);
    log_info(text);
    if (typed_.fail_on == "never") return Outcome::clean;
    // Where nothing was judged nothing passed.
    const bool found = errors != 0 || passes == 0 || (typed_.fail_on == "skip" && skips != 0);
    return found ? Outcome::findings : Outcome::clean;
  }

  TypedPrecision typed_;
};

}  // namespace

std::unique_ptr<Command> make_api_precision_compare() {
  return std::make_unique<PrecisionCommand>();
}

}  // namespace msprobe::precheck
