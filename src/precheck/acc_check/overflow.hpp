// SPDX-License-Identifier: Apache-2.0
// NaN and infinities in the results of calls that are made again, on the CPU and on a device.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "precheck/acc_check/check.hpp"
#include "precheck/judgement/output.hpp"
#include "precheck/result_files/result_files.hpp"

namespace msprobe::precheck {

/// Whether a number in the output is NaN or infinite. Outputs without floating-point numbers have none.
bool overflows(const CallOutput& output);

/// Counts the operations that overflow. Overflow on the CPU alone or on the device alone is abnormal.
class OverflowTally {
 public:
  void take(const OperationReport& result);

  std::size_t called() const { return called_; }
  /// The counts, a line for each operation that overflows, and the first of those that were not called.
  std::string text(const CheckSummary& summary, bool color) const;

 private:
  struct NamedOverflow {
    std::string name;
    CallOverflow where;
  };
  struct NotCalled {
    std::string name;
    std::string reason;
  };
  std::vector<NamedOverflow> found_;
  std::vector<NotCalled> not_called_;
  std::size_t called_ = 0;
};

}  // namespace msprobe::precheck
