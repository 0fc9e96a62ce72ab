// SPDX-License-Identifier: Apache-2.0
// A runner that starts when it is needed and again after it was lost; and a pool that keeps runners for the
// next check.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "precheck/runner/answer.hpp"
#include "precheck/runner/process.hpp"
#include "precheck/runner/shared_file.hpp"

namespace msprobe::precheck {

/// The first line of a runner's text, as a message shows it: not too long, and nothing but printable
/// characters.
std::string first_line(const std::string& text);

class Runner {
 public:
  explicit Runner(RunnerStart start) : start_(std::move(start)) {}

  const RunnerStart& how() const { return start_; }
  /// Starts the runner if it does not run. Error if Python or PyTorch is missing.
  const RunnerHello& start();
  /// The process of a runner that was started.
  RunnerProcess& process() { return *process_; }
  void end() { process_.reset(); }

  SharedFile& inputs() { return inputs_; }
  SharedFile& outputs() { return outputs_; }

 private:
  RunnerStart start_;
  SharedFile inputs_;
  SharedFile outputs_;
  std::unique_ptr<RunnerProcess> process_;
  RunnerHello hello_;
  int failed_starts_ = 0;
};

/// Starting Python and PyTorch takes seconds: one check leaves its runners to the next.
class RunnerPool {
 public:
  /// The runner of worker 0, 1, 2, ..., started with these settings.
  Runner& at(std::size_t worker, const RunnerStart& start);

 private:
  std::vector<std::unique_ptr<Runner>> runners_;
};

}  // namespace msprobe::precheck
