// SPDX-License-Identifier: Apache-2.0
// One worker: it has a runner, and turns a planned call into a result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dump/entry.hpp"
#include "precheck/acc_check/check.hpp"
#include "precheck/calls/request.hpp"
#include "precheck/runner/runner.hpp"
#include "support/byte_source.hpp"

namespace msprobe::precheck {

/// Gets both sides of each judged output while they are in memory. `places`: the numbers of the elements of
/// both lists among all recorded elements; empty: their order.
using OutputsSeen = std::function<void(CallDirection direction, const CallOutput& reference,
                                       const CallOutput& device, const std::vector<std::size_t>& places)>;

/// The data that all workers share.
struct CallerJob {
  const CheckOptions& options;
  const Standards& standards;
  const CallPlan& plan;
  const ByteSource& json;
  std::shared_ptr<const TensorStore> tensors;  // tensors that its entries name; null: none were dumped
  const std::string& error_data;
  OutputsSeen seen = {};
};

/// A call with its request.
struct PreparedCall {
  OperationReport refused;  // has rows if the call cannot be made
  CallRequest request;
  dump::Entry forward;
  dump::Entry backward;

  InputFacts inputs() const {
    return {.float8_input = request.float8_input, .input_scale = request.input_scale};
  }
};

class Caller {
 public:
  Caller(const CallerJob& job, Runner& runner) : job_(job), runner_(runner) {}

  /// Reads the entries, and builds the request.
  PreparedCall prepare(std::uint64_t index, RequestBuilder& builder);
  OperationReport make(std::uint64_t index, const PreparedCall& prepared);

  std::uint64_t lost() const { return lost_; }

 private:
  OperationReport judged(const PlannedCall& call, const PreparedCall& prepared, CallAnswer& answer);
  void judge_backward(const PlannedCall& call, const PreparedCall& prepared, CallAnswer& answer,
                      OperationReport& result) const;
  /// Saves the tensors of a wrong call, if the user wants them.
  void save(const PlannedCall& call, const PreparedCall& prepared, const CallAnswer* answer,
            const OperationReport& result) const;
  std::optional<CallAnswer> ask(std::uint64_t index, const PreparedCall& prepared, std::string& lost);

  const CallerJob& job_;
  Runner& runner_;
  std::uint64_t lost_ = 0;
};

/// The report of a call that was not made.
OperationReport skipped(const std::string& name, const std::string& reason);

}  // namespace msprobe::precheck
