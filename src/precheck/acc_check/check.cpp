// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "precheck/acc_check/caller.hpp"
#include "precheck/calls/request.hpp"
#include "support/ascii.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::string_view kNotJudged = "they could not be called or judged";
constexpr double kMemoryShare = 0.8;  // of the machine's, for all runners together

/// Puts results, which any worker may finish first, into the order of the dump.
class OrderedResults {
 public:
  OrderedResults(const std::function<void(const OperationReport&)>& take, Progress* progress)
      : take_(take), progress_(progress) {}

  void put(std::size_t place, OperationReport result) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(place, std::move(result));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
         first = waiting_.erase(first), ++next_) {
      take_(first->second);
      if (progress_ != nullptr) progress_->advance();
    }
  }
  /// Hands on the results after a gap, when no more results will come.
  void put_rest() {
    const std::lock_guard lock(mutex_);
    for (const auto& [place, result] : waiting_) take_(result);
    waiting_.clear();
  }
  std::size_t told() const { return next_; }

 private:
  const std::function<void(const OperationReport&)>& take_;
  Progress* progress_;
  std::mutex mutex_;
  std::map<std::size_t, OperationReport> waiting_;
  std::size_t next_ = 0;
};

RequestOptions request_options(const CheckOptions& options, Framework framework, const std::string& device) {
  RequestOptions request;
  request.framework = framework;
  request.hf32 = device.starts_with("npu") && !options.recorded;
  request.real_data_only = options.recorded;
  request.device_call = !options.recorded;
  request.raise_reference = !options.overflow;
  request.timeout = static_cast<std::int64_t>(std::ceil(options.time_limit));
  return request;
}

bool is_accelerator(const std::string& device) {
  return device.starts_with("cuda") || device.starts_with("npu");
}

/// The calls of the plan that are still to be judged.
std::vector<std::uint64_t> calls_to_do(const CallPlan& plan, const CheckOptions& options,
                                       CheckSummary& summary) {
  std::vector<std::uint64_t> todo;
  for (std::uint64_t i = 0; i < plan.calls.size(); ++i) {
    if (options.done.contains(plan.calls[i].name)) {
      ++summary.done_before;
    } else {
      todo.push_back(i);
    }
  }
  return todo;
}

}  // namespace

void cover(const OperationReport& report, Coverage& coverage) {
  const auto is_judged = [](PrecheckVerdict verdict) {
    return verdict != PrecheckVerdict::none && verdict != PrecheckVerdict::skip;
  };
  const bool is_random =
      report.forward == PythonStatus::pass && report.forward_verdict == PrecheckVerdict::skip;
  if (is_judged(report.forward_verdict) || is_judged(report.backward_verdict)) {
    ++coverage.compared;
  } else if (report.excluded || is_random ||
             (report.forward_verdict == PrecheckVerdict::none &&
              report.backward_verdict == PrecheckVerdict::none)) {
    ++coverage.explained;
  } else {
    coverage.miss(kNotJudged, report.name + " (" + report.reason + ")");
  }
}

std::vector<std::string> devices_of(const std::vector<std::string>& typed) {
  std::vector<std::string> devices;
  std::set<std::string> seen;
  for (const std::string& word : typed) {
    const std::size_t colon = word.find(':');
    const std::string kind = word.substr(0, colon);
    const std::string number = colon == std::string::npos ? "" : word.substr(colon + 1);
    const bool is_kind = kind == "cpu" || kind == "cuda" || kind == "npu";
    const std::string& digits = is_kind ? number : word;
    if ((!is_kind || colon != std::string::npos) && !whole_number<unsigned>(digits))
      throw UsageError(
          fmt::format("-d/--device: '{}' must be a number or one of cpu, cuda, npu", display(word)));
    if (!seen.insert(word).second) throw UsageError("-d/--device: duplicate device");
    devices.push_back(is_kind ? word : "auto:" + word);
  }
  if (devices.empty()) devices.emplace_back("auto");
  return devices;
}

CallPlan read_plan(const CheckOptions& options) {
  const auto json = open_file(options.dump_json);
  CallPlan plan = plan_calls(*json, options.lists, options.filter, options.framework);
  if (!plan.has_data) throw FormatError(options.dump_json, "it has no 'data'");
  return plan;
}

CheckSummary check_calls(const CheckOptions& options, const CallPlan& plan, const Standards& standards,
                         const std::string& error_data, RunnerPool& runners,
                         const std::function<void(const OperationReport&)>& take, Progress* progress) {
  const auto json = open_file(options.dump_json);
  CheckSummary summary;
  summary.duplicates = plan.duplicates;
  const std::vector<std::uint64_t> todo = calls_to_do(plan, options, summary);
  if (plan.calls.empty()) summary.warnings.push_back(options.dump_json + ": it has no operations");
  if (todo.empty()) return summary;

  const CallerJob job{options, standards, plan, *json, tensors_in_folder(plan.tensor_directory), error_data};
  const bool needs_runner =
      std::ranges::any_of(todo, [&](std::uint64_t i) { return plan.calls[i].skip.empty(); });
  // The first runner reports the devices; the number of other runners depends on that.
  const std::size_t most = std::min(std::max<std::size_t>(most_threads(), 1), todo.size());
  const auto runner = [&](std::size_t worker) -> Runner& {
    const std::string& device = options.devices[worker % options.devices.size()];
    return runners.at(worker, {.python = options.python,
                               .device = options.recorded ? "" : device,
                               .memory_share = kMemoryShare / static_cast<double>(most),
                               .jit = options.jit,
                               .references = options.references,
                               .framework = plan.framework});
  };
  if (needs_runner) {
    const RunnerHello& hello = runner(0).start();
    summary.torch = hello.torch;
    summary.mindspore = hello.mindspore;
    summary.device = hello.device;
  }
  std::size_t count = options.runners;
  if (count == 0) count = is_accelerator(summary.device) ? options.devices.size() : most;
  count = std::min({count, most, todo.size()});
  if (!needs_runner) count = 1;
  std::vector<std::unique_ptr<Caller>> callers;
  for (std::size_t worker = 0; worker < count; ++worker)
    callers.push_back(std::make_unique<Caller>(job, runner(worker)));

  if (progress != nullptr) progress->begin("calling", todo.size(), "operations");
  const RequestOptions requested = request_options(options, plan.framework, summary.device);
  OrderedResults results(take, progress);
  std::atomic<std::size_t> next = 0;
  std::atomic<std::uint64_t> synthetic = 0;
  const auto work = [&](std::size_t worker) {
    Caller& caller = *callers[worker];
    RequestBuilder builder(job.tensors, requested);
    for (std::size_t place = next++; place < todo.size(); place = next++) {
      const PreparedCall prepared = caller.prepare(todo[place], builder);
      if (prepared.request.synthetic) ++synthetic;
      results.put(place, caller.make(todo[place], prepared));
    }
  };
  try {
    parallel_for(callers.size(), work);
  } catch (...) {        // an interruption, too
    results.put_rest();  // can be resumed
    throw;
  }
  if (progress != nullptr) progress->end();
  summary.calls = results.told();
  summary.synthetic = synthetic;
  for (const auto& caller : callers) summary.lost_runners += caller->lost();
  return summary;
}

}  // namespace msprobe::precheck
