// SPDX-License-Identifier: Apache-2.0
// The findings about the operations of a running training: which of them are wrong, where they are called and
// since which step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "precheck/result_files/result_files.hpp"
#include "support/coverage.hpp"

namespace msprobe::precheck {

struct OnlineOperation {
  std::string place;                                 // of the module that calls it, empty: not known
  std::string where;                                 // file, line and code of the caller, empty: not known
  const std::vector<std::string>* frames = nullptr;  // the whole stack, innermost first
  PrecheckVerdict worst = PrecheckVerdict::none;
  bool in_backward = false;                  // whether the fields below are about its backward
  std::uint64_t since = 0;                   // the first step with such a verdict
  std::optional<std::uint64_t> right_until;  // the last step before it that was judged without such a verdict
  std::string reason;
  std::uint64_t wrong = 0;   // calls
  std::uint64_t judged = 0;  // calls
  bool excluded = false;     // a rule or the user excludes the operation
};

class OnlineFindings {
 public:
  /// Notes where calls of an operation come from. FormatError, as from take(), if there are too many
  /// operations.
  void place(const std::string& name, const std::string& place, const std::string& where,
             const std::vector<std::string>& frames);
  /// The findings about an operation that was taken.
  const OnlineOperation& operation(const std::string& name) const { return known_.at(name).operation; }

  struct NewFindings {
    bool row = false;        // its verdicts differ from those of the last row
    bool new_error = false;  // the first error of this operation
  };
  /// `order`: calls that were made earlier have lower ones.
  NewFindings take(const OperationReport& report, std::uint64_t step, std::uint64_t order);

  std::size_t of(PrecheckVerdict verdict) const;
  std::uint64_t calls() const { return calls_; }
  void cover(Coverage& coverage) const;

  /// `step 5: Functional.linear.3 in layers.1.mlp.up (Linear) is wrong: ...`
  std::string error_text(const std::string& name) const;
  /// Lists the operations with errors in order, with their place and the step since when.
  std::string lines(bool color) const;

 private:
  struct Known {
    OnlineOperation operation;
    std::uint64_t order = 0;  // of the call with the first error
    PrecheckVerdict forward = PrecheckVerdict::none;
    PrecheckVerdict backward = PrecheckVerdict::none;
    bool has_row = false;
    std::optional<std::uint64_t> right;
  };

  std::map<std::string, Known> known_;
  std::set<std::vector<std::string>> stacks_;  // many operations share one
  std::uint64_t calls_ = 0;
};

}  // namespace msprobe::precheck
