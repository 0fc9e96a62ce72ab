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

/// Lists name this many calls; the rest are only counted.
inline constexpr std::size_t kShownCalls = 10;

/// `3 errors, 0 warnings, 2 SKIP`
std::string counts_text(std::size_t errors, std::size_t warnings, std::size_t skips, bool color);

/// Counts right and wrong operations, and keeps the first that are not right.
class Tally {
 public:
  void take(const OperationReport& result);

  std::size_t of(PrecheckVerdict verdict) const { return counts_[static_cast<std::size_t>(verdict)]; }
  std::string lines(bool color) const;
  const Coverage& coverage() const { return coverage_; }

 private:
  struct Shown {
    std::string name;
    PrecheckVerdict verdict;
    std::string reason;
  };

  std::size_t counts_[5] = {};
  std::vector<Shown> shown_;
  std::size_t hidden_ = 0;
  Coverage coverage_;
};

/// The summary of a check, without the names of files.
std::string summary_text(const CheckSummary& summary, const Tally& tally, bool recorded, bool color);

/// The summary of two dumps, with the names of files.
std::string against_text(const AgainstResult& result, const AgainstOptions& options, bool color);

}  // namespace msprobe::precheck
