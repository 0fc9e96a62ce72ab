// SPDX-License-Identifier: Apache-2.0
// Judges the calls that a running training sends (task acc_check of the recorder): like those of a dump, each
// from its own inputs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "precheck/acc_check/check.hpp"
#include "precheck/acc_check/online_case.hpp"
#include "precheck/acc_check/online_findings.hpp"
#include "precheck/acc_check/online_messages.hpp"
#include "precheck/acc_check/online_table.hpp"
#include "precheck/acc_check/online_tensors.hpp"
#include "precheck/calls/request.hpp"
#include "precheck/result_files/result_files.hpp"
#include "precheck/runner/runner.hpp"
#include "precheck/standards/standards.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"

namespace msprobe::precheck {

/// The source of a training's messages.
class OnlineSource {
 public:
  virtual ~OnlineSource() = default;
  /// The training's file of tensors with this number. IoError.
  virtual std::shared_ptr<const ByteSource> tensors(std::uint64_t file) = 0;
  /// Says that the tensors of the message are not needed any more.
  virtual void release(const OnlineMessage& message) = 0;
  /// Sends a line of JSON to a training that waits for it.
  virtual void reply(const std::string& json) = 0;
};

/// The settings of the runner that computes the references of trainings.
RunnerStart online_runner(const std::string& python, const std::string& device);

class OnlineJudge {
 public:
  OnlineJudge(OnlineStart start, OnlineSource& source, Runner& runner, const Standards& standards,
              bool color);
  /// Called before take(): this training is the second, the third, ... of several with the same rank.
  void set_training(std::size_t number, const std::string& folder);
  /// Takes a message. Throws Error if nothing can be judged any more, Interrupted.
  void take(OnlineMessage message);
  /// Called when the training has ended or is lost: judges the calls that wait, and reports the findings.
  void finish();
  /// The number of operations with this verdict.
  std::size_t of(PrecheckVerdict verdict) const { return findings_.of(verdict); }
  void cover(Coverage& coverage) const { findings_.cover(coverage); }

 private:
  /// A call that waits to be judged, together with its backward if one follows.
  struct HeldCall {
    OnlineMessage forward;
    std::optional<OnlineMessage> backward;
    std::shared_ptr<ReceivedTensors> tensors;
    std::uint64_t memory() const;  // about
  };

  std::string of_rank() const;
  bool tells() const;
  std::string steps_text() const;
  void reply_begin() const;
  void reply(std::uint64_t id, bool refused) const;
  void note_step(const OnlineMessage& message);
  void note_skipped(const OnlineMessage& message);
  void add_tensors(HeldCall& held, OnlineMessage& message) const;
  void take_call(OnlineMessage message);
  void take_backward(OnlineMessage message);
  void judge_rest();
  bool judge_held(const HeldCall& held);
  void conclude(OperationReport report, std::uint64_t step, std::uint64_t order);
  void add_row(const OperationReport& report);
  void add_compared();
  void save(const HeldCall& held, const std::string& backward);
  void warn_of_disk(const IoError& error);
  void tell_progress();

  OnlineStart start_;
  OnlineSource& source_;
  const Standards& standards_;
  bool color_;
  Runner& runner_;
  OnlineCases cases_;
  CheckOptions options_;
  RequestOptions request_options_;
  std::map<std::uint64_t, HeldCall> held_;
  std::uint64_t held_memory_ = 0;
  OnlineFindings findings_;
  std::optional<ResultFiles> files_;
  std::optional<OnlineTable> table_;  // if it was asked for
  std::string torch_;
  std::string leaf_;          // of the rank that sends
  std::size_t training_ = 1;  // of those with this rank
  std::optional<std::uint64_t> first_step_;
  std::uint64_t last_step_ = 0;
  std::size_t told_ = 0;
  bool warned_ = false;
  std::chrono::steady_clock::time_point told_at_ = std::chrono::steady_clock::now();
};

}  // namespace msprobe::precheck
