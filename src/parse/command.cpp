// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <optional>

#include "parse/parse.hpp"
#include "parse/shell.hpp"
#include "parse/summary.hpp"
#include "report/writers.hpp"
#include "support/ascii.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

/// "2,3" or "2x3".
std::vector<std::int64_t> to_shape(const std::string& typed) {
  std::vector<std::int64_t> shape;
  for (const std::string_view part : split(typed, ",x")) {
    const auto length = whole_number<std::int64_t>(part);
    if (!length || *length < 0)
      throw UsageError("--shape: '" + display(typed) + "' is not a list of sizes such as 2,3 or 2x3");
    shape.push_back(*length);
  }
  return shape;
}

tensor::DType to_dtype(const std::string& typed) {
  const auto dtype = tensor::dtype_from_torch(typed);
  if (!dtype)
    throw UsageError("--dtype: '" + display(typed) + "' is not an element type such as float32 or bfloat16");
  return *dtype;
}

report::Format summary_format(const std::string& path) {
  const auto format = report::format_of_file(path);
  if (!format) throw UsageError("--summary: the name must end in .csv, .xlsx, .json or .jsonl");
  return *format;
}

/// Logs one line per file, for users who see no summary.
void log_failures(const ParseOptions& options, const ParseReport& report) {
  for (const FileResult& file : report.files) {
    const std::string name =
        report.failed_list.empty() ? display(options.input) : display(options.input + "/" + file.file);
    if (!file.problem.empty()) log_error(name + ": " + file.problem);
    for (const TensorResult& tensor : file.tensors) {
      if (tensor.problem.empty()) continue;
      log_error(name + ": " + tensor.problem);
      break;
    }
  }
}

/// If the user named one file and it gave no result, the only message is the reason.
void refuse_single(const ParseOptions& options, const FileResult& file) {
  if (file.tensors.empty() && !file.problem.empty()) throw FormatError(display(options.input), file.problem);
  if (file.tensors.size() == 1 && !file.tensors[0].problem.empty())
    throw FormatError(display(options.input), file.tensors[0].problem);
}

class ParseCommand final : public Command {
 public:
  std::string_view name() const override { return "parse"; }
  std::string_view summary() const override { return "Convert kernel dumps and tensor files"; }

  void declare(OptionList& options) override {
    input_ = options
                 .add("-d,--dump_path=PATH", options_.input,
                      "File, or folder of files, to convert; without it, the shell")
                 .details("SHELL has its commands.");
    using formats::OutputFormat;
    const auto needs_input = [this](Option option) {
      option.needs(input_, "without it the shell reads commands");
    };
    needs_input(options
                    .add("-t,--type", options_.format,
                         {{"pt", OutputFormat::pt},
                          {"npy", OutputFormat::npy},
                          {"npz", OutputFormat::npz},
                          {"safetensors", OutputFormat::safetensors},
                          {"bin", OutputFormat::bin}},
                         "Type of the results")
                    .details("`bin` has the bare elements, little-endian, in row-major order."));
    needs_input(options.add("-o,--output_path[=DIR]", options_.output_directory, "Folder for the results")
                    .details("It is created where missing."));
    needs_input(options.add_flag("-r,--recursive", options_.recursive,
                                 "Also convert files in subfolders; results keep their relative paths"));
    Option dtype =
        options
            .add(
                "--dtype=TYPE", [this](const std::string& typed) { options_.raw_dtype = to_dtype(typed); },
                "Element type of .bin files with bare elements")
            .details(
                "It also applies to files without a known ending; types are for example `float32` and "
                "`bfloat16`.");
    needs_input(dtype);
    options
        .add(
            "--shape=SIZES", [this](const std::string& typed) { options_.raw_shape = to_shape(typed); },
            "Their shape, for example 2,3; default: one axis")
        .details("`2x3` means the same.")
        .needs(dtype, "it is for files of bare elements");
    const Option summary =
        options.add("--summary=FILE", summary_, "Also write the summary to this .csv, .xlsx, .json or .jsonl")
            .details("It has one row per tensor.");
    needs_input(summary);
    write_.existing = Existing::refuse;
    options.add_overwrite(write_.existing)
        .details("That is, the file of --summary. Results replace those of an earlier run in any case.")
        .needs(summary);
  }

  Outcome run(const Context& context) override {
    if (!input_.given()) return run_shell(context);
    const ParseOptions& options = options_;
    std::optional<report::Format> table_format;
    if (!summary_.empty()) {
      table_format = summary_format(summary_);
      check_output(summary_, write_.existing);
    }
    const ParseReport report = parse(options, context.progress);
    if (table_format) report::write_file(*summary_table(report), *table_format, summary_, write_);
    if (report.files.size() == 1 && report.failed_list.empty()) refuse_single(options, report.files.front());
    if (log_level() == LogLevel::quiet) log_failures(options, report);
    constexpr std::size_t kRows = 20;
    const bool all = log_level() >= LogLevel::verbose;
    std::string text =
        render_summary(report, all ? std::numeric_limits<std::size_t>::max() : kRows, context.color);
    text.pop_back();
    log_info(text);
    return report.failures() == 0 ? Outcome::clean : Outcome::failure;
  }

 private:
  ParseOptions options_;
  std::string summary_;
  report::WriteOptions write_;
  Option input_;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<ParseCommand>();
}

}  // namespace msprobe::parse
