// SPDX-License-Identifier: Apache-2.0
// Calls the operations of a dump again, or takes what was recorded of them, and has each judged by a
// reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "precheck/calls/plan.hpp"
#include "precheck/judgement/output.hpp"
#include "precheck/result_files/result_files.hpp"
#include "precheck/standards/standards.hpp"
#include "support/coverage.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::precheck {

class RunnerPool;

/// Thirty years, which the clock can count in nanoseconds.
inline constexpr double kLongestSeconds = 1e9;

struct CheckOptions {
  std::string dump_json;
  Framework framework = Framework::unspecified;  // that the dump has to be of
  std::string python = "python3";
  std::vector<std::string> devices = {"auto"};  // one runner or more each
  std::size_t runners = 0;                      // 0: as many as there are cores, one for each accelerator
  double time_limit = 300;                      // seconds an operation; 0: none
  bool filter = false;
  CallLists lists;
  Selection selection = Selection::release_26;
  bool recorded = false;                    // the dump's own outputs are judged
  std::set<std::string, std::less<>> done;  // operations that are left out: they were judged before
  std::string references;                   // of the user, as a runner takes them; empty: none
  bool jit = false;                         // compile operations, on an NPU
  bool overflow = false;                    // look for overflow, the reference in the recorded types
};

struct CheckSummary {
  std::uint64_t calls = 0;  // reported now
  std::uint64_t done_before = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t synthetic = 0;  // calls with random data
  std::uint64_t lost_runners = 0;
  std::string torch;
  std::string mindspore;  // empty: it was not called
  std::string device;
  std::vector<std::string> warnings;
};

/// Adds an operation to the coverage that decides the exit status. An operation that the user excluded, or
/// one without outputs, has nothing to judge, so it counts as explained.
void cover(const OperationReport& report, Coverage& coverage);

/// `0`, `cpu`, `cuda`, `npu:1` as typed, in the words of a runner: a number alone is of the kind that is
/// there. UsageError for others.
std::vector<std::string> devices_of(const std::vector<std::string>& typed);

/// The calls of the dump. IoError; FormatError for a dump that has no callable operations.
CallPlan read_plan(const CheckOptions& options);

/// Hands each result to `take`, in the order of the dump. `error_data`: a folder for the tensors of wrong
/// calls; empty: they are not saved. The runners stay in `runners`. Throws Error if nothing can be called;
/// Interrupted.
CheckSummary check_calls(const CheckOptions& options, const CallPlan& plan, const Standards& standards,
                         const std::string& error_data, RunnerPool& runners,
                         const std::function<void(const OperationReport&)>& take, Progress* progress);

}  // namespace msprobe::precheck
