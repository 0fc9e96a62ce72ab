// SPDX-License-Identifier: Apache-2.0
// The summary on the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "precheck/acc_check/against.hpp"
#include "precheck/acc_check/check.hpp"
#include "precheck/result_files/result_files.hpp"

namespace msprobe::precheck {

/// Lists name so many calls; the others are counted.
inline constexpr std::size_t kShownCalls = 10;

/// How many operations are right and wrong, and the first that are not right.
class Tally {
 public:
  void take(const OperationReport& result);

  std::size_t of(Verdict verdict) const { return counts_[static_cast<std::size_t>(verdict)]; }
  std::string lines(bool color) const;
  const Coverage& coverage() const { return coverage_; }

 private:
  struct Shown {
    std::string name;
    Verdict verdict;
    std::string reason;
  };

  std::size_t counts_[5] = {};
  std::vector<Shown> shown_;
  std::size_t hidden_ = 0;
  Coverage coverage_;
};

/// Without the names of files.
std::string summary_text(const CheckSummary& summary, const Tally& tally, bool recorded, bool color);

/// The same of two dumps, with the names of files.
std::string against_text(const AgainstResult& result, const AgainstOptions& options, bool color);

}  // namespace msprobe::precheck
