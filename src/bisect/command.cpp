// SPDX-License-Identifier: Apache-2.0
#include "bisect/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "support/error.hpp"
#include "support/gate.hpp"
#include "support/option_list.hpp"
#include "support/text.hpp"

namespace msprobe::bisect {
namespace {

namespace fs = std::filesystem;

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

/// The Python beside this program, as in a virtual environment, then those of PATH.
std::vector<std::string> pythons() {
  std::vector<std::string> list;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (!error && fs::exists(folder / "python3", error)) list.push_back((folder / "python3").string());
  list.insert(list.end(), {"python3", "python"});
  return list;
}

bool has_package(const std::string& python) {
  const std::vector<std::string> words = {
      python, "-c",
      "import importlib.util as u, sys; "
      "sys.exit(not (u.find_spec('msprobe') and u.find_spec('msprobe.bisect')))"};
  pid_t child = 0;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int failed = ::posix_spawnp(&child, python.c_str(), &quiet, nullptr, pointers(words).data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (failed != 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class BisectCommand final : public Command {
 public:
  std::string_view name() const override { return "bisect"; }
  std::string_view summary() const override {
    return "Record two trainings and find where they first diverge";
  }

  void declare(OptionList& options) override {
    options.add("-o,--output_path=DIR", output_, "Folder for the dumps and the report; it must be empty");
    options.add("--steps=N", steps_, "Number of steps to record").in_range(1);
    options
        .add("--noise-floor=PATH", noise_floor_,
             "Dump of the second program's code on other kernels: its differences count as rounding")
        .details("As the option of `msprobe compare`.");
    gate_.declare(options, "tensors", {"culprit", "never"}, "Exit with 1 on such a finding");
    options.add("commands=-- COMMAND -- COMMAND", commands_,
                "The run under test, and the one that is taken for right");
  }

  /// Called only if words come before `bisect`.
  Outcome run(const Context&) override {
    throw UsageError("the options of bisect come after its name",
                     "msprobe bisect [options] -- COMMAND -- COMMAND");
  }

 private:
  std::string output_ = "./msprobe_bisect";
  std::size_t steps_ = 2;
  std::string noise_floor_;
  Gate gate_;
  std::string commands_;
};

}  // namespace

MadeCommand make_command() {
  return std::make_unique<BisectCommand>();
}

bool takes(const std::vector<std::string>& words) {
  if (words.empty() || words.front() != "bisect") return false;
  const auto end = std::ranges::find(words, "--");
  return std::none_of(words.begin(), end,
                      [](const std::string& word) { return word == "-h" || word == "--help"; });
}

void start(const std::vector<std::string>& words) {
  if (std::ranges::count(words, "--") < 2)
    throw UsageError(fmt::format("'{}': two commands are needed, each after --",
                                 display(fmt::format("{}", fmt::join(words, " ")))),
                     "msprobe bisect [options] -- COMMAND -- COMMAND");
  for (const std::string& python : pythons()) {
    if (!has_package(python)) continue;
    std::vector<std::string> all = {python, "-m", "msprobe"};
    all.insert(all.end(), words.begin(), words.end());
    ::execvp(python.c_str(), pointers(all).data());
    break;
  }
  throw UsageError(
      "bisect needs a Python that has the package msprobe, and neither python3 nor python in PATH does",
      "install the wheel into the environment of the training, or add the package to PYTHONPATH");
}

}  // namespace msprobe::bisect
