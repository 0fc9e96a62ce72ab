// SPDX-License-Identifier: Apache-2.0
// A command that has one option of every kind, for the tests of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/command.hpp"

namespace msprobe {

class FakeCommand : public Command {
 public:
  explicit FakeCommand(bool with_fuzzy_match = false) : with_fuzzy_match_(with_fuzzy_match) {}

  std::string_view name() const override { return "compare"; }
  std::string_view summary() const override { return "Compare two things"; }
  void declare(CLI::App& app) override {
    app.add_option("--target_path", target, "Side under test")->type_name("PATH");
    app.add_option("--golden_path", golden, "Reference side")->type_name("PATH");
    app.add_option("-o,--output_path", output, "Folder of the results")->type_name("DIR")->expected(0, 1);
    app.add_option("--rules", rules, "Thresholds")->type_name("FILE")->default_str("built-in");
    app.add_option("--format", formats, "Formats")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::IsMember({"csv", "xlsx", "json"}));
    app.add_flag("--xlsx", xlsx, "Write a workbook");
    app.add_flag("-s,--stack_mode", stack, "Show stacks");
    if (with_fuzzy_match_) app.add_flag("--fuzzy_match", fuzzy, "Match names loosely");
  }
  std::vector<std::pair<std::string, std::string>> aliases() const override {
    return {{"-tp", "--target_path"}, {"-gp", "--golden_path"}, {"-fm", "--fuzzy_match"}};
  }
  Outcome run(const Context& /*context*/) override { return Outcome::clean; }

  std::string target, golden, output, rules;
  std::vector<std::string> formats;
  bool xlsx = false, stack = false, fuzzy = false;

 private:
  bool with_fuzzy_match_;
};

}  // namespace msprobe
