// SPDX-License-Identifier: Apache-2.0
#include "parse/command.hpp"

#include <charconv>
#include <limits>
#include <optional>

#include "parse/parse.hpp"
#include "parse/shell.hpp"
#include "parse/summary.hpp"
#include "report/writers.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

/// What was typed.
struct Typed {
  std::string input;
  std::string type = "pt";
  std::string output = "./output";
  bool recursive = false;
  std::string dtype;
  std::string shape;
  std::string summary;

  bool operator==(const Typed&) const = default;
};

/// "2,3" or "2x3".
std::vector<std::int64_t> to_shape(const std::string& typed) {
  const auto refuse = [&]() -> std::vector<std::int64_t> {
    throw UsageError("--shape: '" + display(typed) + "' is no list of sizes such as 2,3 or 2x3");
  };
  std::vector<std::int64_t> shape;
  const char* at = typed.data();
  const char* const end = typed.data() + typed.size();
  while (true) {
    std::int64_t length = 0;
    const auto [stop, error] = std::from_chars(at, end, length);
    if (error != std::errc{} || length < 0) return refuse();
    shape.push_back(length);
    if (stop == end) return shape;
    if (*stop != ',' && *stop != 'x') return refuse();
    at = stop + 1;
  }
}

ParseOptions to_options(const Typed& typed) {
  ParseOptions options;
  options.input = typed.input;
  options.output_directory = typed.output.empty() ? "./output" : typed.output;
  options.recursive = typed.recursive;
  const auto format = formats::output_format_from_name(typed.type);
  if (!format) throw UsageError("-t: '" + display(typed.type) + "' is no type of file to write");
  options.format = *format;
  if (!typed.dtype.empty()) {
    options.raw_dtype = tensor::dtype_from_torch(typed.dtype);
    if (!options.raw_dtype)
      throw UsageError("--dtype: '" + display(typed.dtype) +
                       "' is no element type such as float32 or bfloat16");
  }
  if (!typed.shape.empty()) {
    if (typed.dtype.empty()) throw UsageError("--shape needs --dtype: it is for files of bare elements");
    options.raw_shape = to_shape(typed.shape);
  }
  return options;
}

report::Format summary_format(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  const auto format = dot == std::string::npos
                          ? std::nullopt
                          : report::format_from_name(std::string_view(path).substr(dot + 1));
  if (!format) throw UsageError("--summary: the name must end in .csv, .xlsx, .json or .jsonl");
  return *format;
}

/// One line a file, for those who see no summary.
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

/// Where one file was named and nothing came of it there is nothing to tell but why.
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
    options
        .add("-d,--dump_path", typed_.input,
             "File, or folder whose files are converted; without it, the shell")
        .argument("PATH");
    options.add("-t,--type", typed_.type, "Type of the results")
        .one_of({"pt", "npy", "npz", "safetensors", "bin"})
        .show_default();
    options.add("-o,--output_path", typed_.output, "Folder for the results")
        .argument("DIR")
        .show_default()
        .values(0, 1);
    options.add_flag("-r,--recursive", typed_.recursive,
                     "Also the folders below; results keep their relative paths");
    options.add("--dtype", typed_.dtype, "Element type of .bin files that are bare elements")
        .argument("TYPE");
    options.add("--shape", typed_.shape, "Their shape, such as 2,3; default: one axis").argument("SIZES");
    options.add("--summary", typed_.summary, "Also write the summary to this .csv, .xlsx, .json or .jsonl")
        .argument("FILE");
  }

  Outcome run(const Context& context) override {
    if (typed_ == Typed{}) return run_shell(context);
    if (typed_.input.empty()) throw UsageError("-d/--dump_path is required");
    const ParseOptions options = to_options(typed_);
    std::optional<report::Format> table_format;
    if (!typed_.summary.empty()) {
      table_format = summary_format(typed_.summary);
      check_output(typed_.summary);
    }
    const ParseReport report = parse(options, context.progress);
    if (table_format) report::write_file(*summary_table(report), *table_format, typed_.summary);
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
  Typed typed_;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<ParseCommand>();
}

}  // namespace msprobe::parse
