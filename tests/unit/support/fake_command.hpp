// SPDX-License-Identifier: Apache-2.0
// A command that has one option of every kind, for the tests of the command line.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/command.hpp"
#include "support/option_list.hpp"

namespace msprobe {

class FakeCommand : public Command {
 public:
  explicit FakeCommand(bool with_fuzzy_match = false) : with_fuzzy_match_(with_fuzzy_match) {}

  std::string_view name() const override { return "compare"; }
  std::string_view summary() const override { return "Compare two things"; }
  void declare(OptionList& options) override {
    options.add("-tp,--target_path=PATH", target, "Side under test");
    options.add("-gp,--golden_path=PATH", golden, "Reference side");
    options.add("-o,--output_path[=DIR]", output, "Folder of the results");
    options.add("--rules=FILE", rules, "Thresholds").default_text("built-in");
    options.add("--format", formats, "Formats").commas().one_of({"csv", "xlsx", "json"});
    options.add("--by", by, "Order").suggest({"Cosine", "Max diff"});
    options.add_flag("--xlsx", xlsx, "Write a workbook");
    options.add_flag("-s,--stack_mode", stack, "Show stacks");
    if (with_fuzzy_match_) options.add_flag("-fm,--fuzzy_match", fuzzy, "Match names loosely");
  }
  Outcome run(const Context& /*context*/) override { return Outcome::clean; }

  std::string target, golden, output, rules, by;
  std::vector<std::string> formats;
  bool xlsx = false, stack = false, fuzzy = false;

 private:
  bool with_fuzzy_match_;
};

}  // namespace msprobe
