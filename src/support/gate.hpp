// SPDX-License-Identifier: Apache-2.0
// --fail-on: the exit status of a command that judges. Status 0 means that everything requested was compared
// and nothing was found. A part that was not compared never counts as clean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/command.hpp"
#include "support/coverage.hpp"
#include "support/option_list.hpp"

namespace msprobe {

class Gate {
 public:
  /// `levels` begins with the worst and ends with "never". `unit`: what the command compares, "tensors".
  Option declare(OptionList& options, std::string_view unit, const std::vector<std::string>& levels,
                 const std::string& help = "Exit with 1 on such a finding, or a worse one");

  /// --allow-uncompared
  const Option& allowance() const { return allowance_; }
  /// "never": the command only reports.
  const std::string& level() const { return level_; }
  bool is_set() const { return level_ != "never"; }
  std::string_view unit() const { return unit_; }

  /// Returns status 1 if there are `findings` of the requested level; else 2 unless enough was compared and
  /// `not_judged` is empty. At a gate, prints one line about everything that was not judged; otherwise a
  /// warning for each such thing ("step0/rank1: the dump has no entries").
  Outcome end(bool findings, const Coverage& coverage, const std::vector<std::string>& not_judged = {}) const;
  /// The same without printing.
  Outcome outcome(bool findings, const Coverage& coverage,
                  const std::vector<std::string>& not_judged = {}) const;
  /// The line: how much was not compared, the first item, the reason, and the remedy. Empty if all was
  /// compared.
  std::string not_judged_line(bool findings, const Coverage& coverage,
                              const std::vector<std::string>& not_judged) const;

 private:
  /// True if as much was compared as --allow-uncompared requires.
  bool is_enough(const Coverage& coverage) const;

  std::string level_ = "never";
  std::string unit_;
  double allowed_ = 0;  // percent
  Option allowance_;
};

}  // namespace msprobe
