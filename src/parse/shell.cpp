// SPDX-License-Identifier: Apache-2.0
#include "parse/shell.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parse/batch_compare.hpp"
#include "parse/elements.hpp"
#include "parse/find_files.hpp"
#include "parse/line_input.hpp"
#include "parse/old_dump.hpp"
#include "parse/parse.hpp"
#include "parse/words.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/log.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/result_name.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrompt = "Parse >>> ";
constexpr const char* kBanner =
    "The shell of msprobe parse. 'help' lists the commands, 'exit' or Ctrl-D ends it.\n";
constexpr std::ptrdiff_t kConvertDepth = 5;
constexpr std::ptrdiff_t kLeastDots = 4;  // a kernel dump's name has five fields

using Words = std::vector<std::string>;

void require_exists(const std::string& path) {
  if (!path_exists(path)) throw IoError(display(path), "No such file or directory");
}

/// One command of the shell, constructed anew for every line.
struct ShellCommand {
  std::string_view name;
  std::string_view summary;
  std::vector<WordOption> options;
  std::function<std::string()> run;
};

WordOption text_option(std::string_view name, std::string_view long_name, std::string_view argument,
                       bool required, std::string_view help, std::string& value) {
  return {name, long_name, argument, required, help, [&value](const std::string& text) { value = text; }};
}

class ParseShell {
 public:
  explicit ParseShell(Progress* progress) : progress_(progress) {}

  /// False if standard output is no longer read.
  bool run(LineInput& input) {
    while (const std::optional<std::string> line = input.next()) {
      ++lines_;
      const Words words = split_words(*line);
      if (words.empty() || words[0].starts_with('#')) continue;
      if (words[0] == "exit" || words[0] == "quit") return true;
      if (!write_all(STDOUT_FILENO, answer(words), "standard output")) return false;
    }
    return true;
  }

  bool failed() const { return failed_; }
  std::size_t lines() const { return lines_; }

 private:
  std::string answer(const Words& words) {
    if (words[0] == "help" || words[0] == "?") return help();
    const std::vector<ShellCommand> commands = make_commands();
    const auto command =
        std::ranges::find_if(commands, [&](const ShellCommand& known) { return known.name == words[0]; });
    if (command == commands.end()) {
      fail("unknown command '" + display(words[0]) + "': 'help' lists the commands");
      return {};
    }
    return run_command(*command, Words(words.begin() + 1, words.end()));
  }

  std::string run_command(const ShellCommand& command, const Words& words) {
    try {
      if (!read_options(words, command.options)) return usage_text(command.name, command.options);
      return command.run();
    } catch (const UsageError& error) {
      fail(fmt::format("{}: {}\n{}", command.name, error.what(), usage_text(command.name, command.options)));
    } catch (const Error& error) {
      fail(fmt::format("{}: {}", command.name, error.what()));
    } catch (const std::bad_alloc&) {
      fail(fmt::format("{}: not enough memory", command.name));
    } catch (const fs::filesystem_error& error) {
      fail(fmt::format("{}: {}", command.name, display(error.what())));
    }
    return {};
  }

  void fail(const std::string& message) {
    failed_ = true;
    log_error(message);
  }

  std::string help() {
    std::string out = "Commands (-h after one shows its options):\n";
    for (const ShellCommand& command : make_commands())
      out += fmt::format("  {:<6}{}\n", command.name, command.summary);
    out += fmt::format("  {:<6}{}\n  {:<6}{}\n", "help", "This list", "exit",
                       "Ends the shell; so do quit and Ctrl-D");
    return out;
  }

  std::vector<ShellCommand> make_commands() {
    path_.clear();
    other_.clear();
    output_.clear();
    layout_.clear();
    toolkit_.clear();
    compare_ = {};
    const auto toolkit = [this](std::string_view name) {
      return text_option(name, "--msaccucmp_path", "FILE", false, "The vendor's converter; not used",
                         toolkit_);
    };
    std::vector<ShellCommand> commands;
    commands.push_back(
        {"cad",
         "Converts the kernel dumps below a folder to .npy",
         {text_option("-m", "--my_dump_path", "DIR", true, "Folder of the dumps", path_),
          text_option("-out", "--output_path", "DIR", false, "Folder for the results", output_),
          toolkit("-asc")},
         [this] { return convert_all(); }});
    commands.push_back(
        {"dc",
         "Converts a dump, or those in a folder, to .npy",
         {text_option("-n", "--name", "PATH", true, "Dump file or folder", path_),
          text_option("-f", "--format", "LAYOUT", false, "Layout of the result", layout_),
          text_option("-out", "--output_path", "DIR", false, "Folder for the results", output_),
          toolkit("-cmp_path")},
         [this] { return convert_one(); }});
    commands.push_back({"vc",
                        "Compares two folders of converted tensors",
                        {text_option("-m", "--my_dump_path", "DIR", true, "Folder under test", path_),
                         text_option("-g", "--golden_dump_path", "DIR", true, "Reference folder", other_),
                         text_option("-out", "--output_path", "DIR", false, "Folder for the result", output_),
                         toolkit("-cmp_path")},
                        [this] { return compare_folders(); }});
    commands.push_back(
        {"cn",
         "Compares two tensors element by element",
         {text_option("-m", "--my_dump_path", "FILE", true, "Tensor under test", compare_.left),
          text_option("-g", "--golden_dump_path", "FILE", true, "Reference tensor", compare_.right),
          {"-p", "--print", "N", false, "Rows to show; 20",
           [this](const std::string& text) { compare_.rows = read_count("-p", text); }},
          {"-s", "--save", "", false, "Saves both as text, beside them",
           [this](const std::string&) { compare_.save = true; }},
          {"-al", "--atol", "X", false, "Absolute tolerance; 0.001",
           [this](const std::string& text) { compare_.tolerance.absolute = read_tolerance("-al", text); }},
          {"-rl", "--rtol", "X", false, "Relative tolerance; 0.001",
           [this](const std::string& text) { compare_.tolerance.relative = read_tolerance("-rl", text); }}},
         [this] { return compare_files(compare_); }});
    commands.push_back({"pt",
                        "Shows a tensor and saves it as text in FILE.txt beside it",
                        {text_option("-n", "--name", "FILE", true, "Tensor file", path_)},
                        [this] { return show_tensor(path_); }});
    commands.push_back({"pk",
                        "Shows entries of a .pkl text dump of the first releases",
                        {text_option("-f", "--file", "FILE", true, "The dump", path_),
                         text_option("-n", "--name", "PREFIX", true, "The beginning of the names", other_)},
                        [this] { return show_old_dump(path_, other_); }});
    return commands;
  }

  /// The result of converting files: the list of outputs, and the problems.
  struct Conversion {
    std::string text;
    std::vector<std::string> problems;
  };

  std::string convert_one() {
    require_exists(path_);
    if (!layout_.empty()) throw Error("changing the layout (-f) needs the vendor's toolkit");
    return told("dc", convert(path_, output_.empty() ? "parse_data/dump_convert" : output_, progress_));
  }

  std::string convert_all() {
    require_exists(path_);
    const std::string usual = "parse_data/batch_dump_convert";
    const std::string output = output_.empty() ? usual + "/" + claim_time_stamp(usual) : output_;
    const InputFiles inputs = find_files(path_, true, output);
    // Files in the same folder are converted one after the other, because they may share a table of long
    // names.
    std::map<std::string, std::vector<std::string>> by_folder;
    std::map<std::string, std::string> first;
    std::vector<std::string> refused;
    for (const RefusedFile& each : inputs.refused) {
      if (is_dump_name(each.name)) refused.push_back(display(each.name) + ": " + each.reason);
    }
    for (const std::string& name : inputs.names) {
      if (!is_dump_name(name)) continue;
      const std::string file = name.substr(name.rfind('/') + 1);
      const auto [place, is_new] = first.try_emplace(file, name);
      if (is_new) {
        by_folder[folder_of(file)].push_back(name);
      } else {
        refused.push_back(display(name) + ": refused: its results would have the same names as those of " +
                          display(place->second));
      }
    }
    if (first.empty())
      throw FormatError(display(path_), "no kernel dumps here: no file name has five fields");
    return told("cad", convert_folders(inputs, {by_folder.begin(), by_folder.end()}, output, refused));
  }

  static bool is_dump_name(const std::string& name) {
    const auto dots =
        std::count(name.begin() + static_cast<std::ptrdiff_t>(name.rfind('/') + 1), name.end(), '.');
    return dots >= kLeastDots && std::count(name.begin(), name.end(), '/') <= kConvertDepth;
  }

  Conversion convert_folders(const InputFiles& inputs,
                             const std::vector<std::pair<std::string, std::vector<std::string>>>& folders,
                             const std::string& output, const std::vector<std::string>& refused) {
    std::vector<Conversion> parts(folders.size());
    if (progress_ != nullptr) progress_->begin("converting", folders.size(), "folders");
    parallel_for(folders.size(), [&](std::size_t i) {
      for (const std::string& name : folders[i].second) {
        try {
          append(parts[i], convert(inputs.path(name), output + "/" + folders[i].first, nullptr));
        } catch (const Error& reason) {
          parts[i].problems.emplace_back(reason.what());
        }
      }
      if (progress_ != nullptr) progress_->advance();
    });
    if (progress_ != nullptr) progress_->end();
    Conversion all{{}, refused};
    for (const Conversion& part : parts) append(all, part);
    return all;
  }

  static void append(Conversion& all, const Conversion& part) {
    all.text += part.text;
    all.problems.insert(all.problems.end(), part.problems.begin(), part.problems.end());
  }

  /// `{operator}/{timestamp}` of `{type}.{operator}.….{timestamp}`.
  static std::string folder_of(const std::string& name) {
    const std::size_t first = name.find('.') + 1;
    const std::string operation = name.substr(first, name.find('.', first) - first);
    const std::string timestamp = name.substr(name.rfind('.') + 1);
    // An empty field would change the meaning of the path.
    return (operation.empty() ? "_" : operation) + "/" + (timestamp.empty() ? "_" : timestamp);
  }

  /// Converts files as the command parse does. Throws if nothing could be converted at all.
  static Conversion convert(const std::string& input, const std::string& output, Progress* progress) {
    ParseOptions options;
    options.input = input;
    options.output_directory = output;
    options.format = formats::OutputFormat::npy;
    const ParseReport report = parse(options, progress);
    Conversion done;
    done.text = "SrcFile: " + display(input) + "\n";
    for (const FileResult& file : report.files) {
      if (!file.problem.empty()) done.problems.push_back(display(file.file) + ": " + file.problem);
      for (const TensorResult& tensor : file.tensors) {
        if (!tensor.problem.empty()) done.problems.push_back(display(file.file) + ": " + tensor.problem);
        if (!tensor.output.empty()) done.text += " - " + display(output + "/" + tensor.output) + "\n";
      }
    }
    return done;
  }

  std::string told(std::string_view command, Conversion conversion) {
    for (const std::string& problem : conversion.problems) fail(fmt::format("{}: {}", command, problem));
    return std::move(conversion.text);
  }

  std::string compare_folders() {
    for (const std::string& folder : {path_, other_}) {
      require_exists(folder);
      if (!fs::is_directory(folder)) throw UsageError(display(folder) + " is not a folder");
    }
    if (!holds_only_tensors(path_) || !holds_only_tensors(other_)) {
      throw Error(
          "comparing unconverted dumps needs the vendor's toolkit; convert both folders with cad "
          "and compare the results");
    }
    const std::string output = output_.empty() ? "parse_data/batch_compare_result" : output_;
    return "Compare result is saved in : " + display(batch_compare(path_, other_, output)) + "\n";
  }

  Progress* progress_;
  bool failed_ = false;
  std::size_t lines_ = 0;
  // The options of the current line.
  std::string path_;
  std::string other_;
  std::string output_;
  std::string layout_;
  std::string toolkit_;
  CompareRequest compare_;
};

}  // namespace

Outcome run_shell(const Context& context) {
  ParseShell shell(context.progress);
  // If the input is not a terminal, a prompt would only clutter the output.
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
    write_all(STDOUT_FILENO, kBanner, "standard output");
    shell.run(*terminal_lines(kPrompt, history_file()));
    return Outcome::clean;
  }
  const bool read_to_end = shell.run(*descriptor_lines(STDIN_FILENO));
  // No path and no input: the user has forgotten something.
  if (read_to_end && shell.lines() == 0)
    throw UsageError("-d/--dump_path is required", "without it, commands are read from standard input");
  return shell.failed() ? Outcome::failure : Outcome::clean;
}

}  // namespace msprobe::parse
