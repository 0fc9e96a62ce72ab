// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "precheck/acc_check/caller.hpp"
#include "precheck/acc_check/summary.hpp"
#include "support/json_writer.hpp"
#include "support/log.hpp"
#include "support/output_file.hpp"
#include "support/result_name.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr double kRunnerShare = 0.5;     // of the machine's memory, at most
constexpr std::uint64_t kMostCases = 2;  // saved calls of an operation
constexpr std::size_t kMostTold = 20;    // errors that are reported when they are found
constexpr std::uint64_t kMostHeld = std::uint64_t{512}
                                    << 20;  // bytes of calls whose backward has not come yet
constexpr auto kBetweenLines = std::chrono::minutes(1);

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", human_count(count), what, count == 1 ? "" : "s");
}

}  // namespace

std::uint64_t OnlineJudge::HeldCall::memory() const {
  constexpr std::uint64_t kAround = 2048;
  return kAround + forward.entry.size();
}

RunnerStart online_runner(const std::string& python, const std::string& device) {
  return {.python = python, .device = device, .memory_share = kRunnerShare, .references = {}};
}

OnlineJudge::OnlineJudge(OnlineStart start, OnlineSource& source, Runner& runner, const Standards& standards,
                         bool color)
    : start_(std::move(start)),
      source_(source),
      standards_(standards),
      color_(color),
      runner_(runner),
      cases_(start_.cases) {
  options_.recorded = true;
  options_.time_limit = start_.time_limit;
  request_options_.real_data_only = true;
  request_options_.device_call = false;
  request_options_.reference_on_device = start_.device != "cpu";
  if (start_.compare) table_.emplace();
  request_options_.timeout = static_cast<std::int64_t>(std::ceil(start_.time_limit));
  reply_begin();
}

void OnlineJudge::take(OnlineMessage message) {
  switch (message.kind) {
    case OnlineMessage::MessageKind::skipped:
      note_skipped(message);
      return;
    case OnlineMessage::MessageKind::unused:
      source_.release(message);
      return;
    case OnlineMessage::MessageKind::end:
      return;
    case OnlineMessage::MessageKind::call:
      take_call(std::move(message));
      break;
    case OnlineMessage::MessageKind::backward:
      take_backward(std::move(message));
      break;
    case OnlineMessage::MessageKind::step:
      judge_rest();
      source_.release(message);
      reply(message.id, false);
      break;
  }
  tell_progress();
}

/// Reports the findings when the training has ended, or is lost.
void OnlineJudge::finish() {
  judge_rest();
  if (!tells()) return;
  if (findings_.calls() == 0) {
    const std::size_t skipped = findings_.of(PrecheckVerdict::skip);
    std::string text = "online pre-check" + of_rank() + ": nothing was judged";
    if (skipped > 0) text += fmt::format(": {} skipped", counted(skipped, "operation"));
    if (files_) text += ", for the reasons in " + display(files_->result_path());
    log_warning(text);
    return;
  }
  std::string text = fmt::format("online pre-check{}: {} of {}", of_rank(),
                                 counted(findings_.calls(), "call"), steps_text());
  if (!torch_.empty()) text += ", by PyTorch " + display(torch_);
  text += fmt::format(": {} pass, ", counted(findings_.of(PrecheckVerdict::pass), "operation"));
  text += counts_text(findings_.of(PrecheckVerdict::error), findings_.of(PrecheckVerdict::warning),
                      findings_.of(PrecheckVerdict::skip), color_);
  text += findings_.lines(color_);
  if (const std::string& dump = cases_.first_dump(); !dump.empty())
    text += "\n  saved: " + display(dump) + " (`msprobe op_generate` makes scripts of its calls)";
  if (files_) {
    text += "\n  written: " + display(files_->result_path());
    text += "\n  written: " + display(files_->details_path());
    if (!files_->compared_path().empty()) text += "\n  written: " + display(files_->compared_path());
  }
  log_info(text);
}

void OnlineJudge::set_training(std::size_t number, const std::string& folder) {
  training_ = number;
  start_.folder = start_.cases = folder;
  cases_ = OnlineCases(folder);
}

/// ` of rank 3`, where ranks are known.
std::string OnlineJudge::of_rank() const {
  constexpr std::string_view kRank = "rank";
  std::string text =
      leaf_.starts_with(kRank) ? " of rank " + display(leaf_.substr(kRank.size())) : std::string();
  if (training_ > 1) text += fmt::format(" of training {}", training_);
  return text;
}

/// Whether this rank reports anything. If all operations are right, only the first of several ranks says so.
bool OnlineJudge::tells() const {
  return !leaf_.starts_with("rank") || leaf_ == "rank0" || findings_.of(PrecheckVerdict::error) > 0;
}

std::string OnlineJudge::steps_text() const {
  if (*first_step_ == last_step_) return fmt::format("step {}", last_step_);
  return fmt::format("steps {} to {}", *first_step_, last_step_);
}

/// Replies with the operations that are never judged, so that the training does not send them.
void OnlineJudge::reply_begin() const {
  JsonWriter json;
  json.open_object();
  json.member("ready", true);
  json.open_list("skipped");
  for (const auto& [type, name] : start_.operations) {
    if (!why_not_called(start_.lists, {type, name, "0"}).empty())
      json.value(std::vector<std::string>{type, name});
  }
  json.close();
  json.close();
  source_.reply(json.take());
}

/// `refused`: calls of this operation cannot be made.
void OnlineJudge::reply(std::uint64_t id, bool refused) const {
  JsonWriter json;
  json.open_object();
  json.member("id", id);
  json.member("refused", refused);
  json.close();
  source_.reply(json.take());
}

void OnlineJudge::note_step(const OnlineMessage& message) {
  if (!first_step_) first_step_ = message.step;
  last_step_ = message.step;
  leaf_ = message.leaf;
}

void OnlineJudge::note_skipped(const OnlineMessage& message) {
  note_step(message);
  const std::string name = message.api.text();
  const std::string rule = why_not_called(start_.lists, message.api);
  OperationReport report = precheck::skipped(name, !message.reason.empty() ? message.reason
                                                   : !rule.empty()         ? rule
                                                                           : "it was not sent");
  report.excluded = !rule.empty();
  conclude(std::move(report), message.step, message.id);
}

/// Moves the tensors of a message to `held`; the rest of the message is small.
void OnlineJudge::add_tensors(HeldCall& held, OnlineMessage& message) const {
  held.tensors->add(message.json, message.tensors, source_.tensors(message.file));
  message.json = {};
}

void OnlineJudge::take_call(OnlineMessage message) {
  note_step(message);
  HeldCall held;
  held.tensors = std::make_shared<ReceivedTensors>();
  add_tensors(held, message);
  if (message.place) {
    findings_.place(message.api.text(), *message.place, message.where, message.frames);
  }
  const std::uint64_t id = message.id;
  const bool follows = message.follows;
  held.forward = std::move(message);
  if (!follows) {
    reply(id, judge_held(held));
  } else {
    held_memory_ += held.memory();
    if (held_memory_ > kMostHeld || !held_.emplace(id, std::move(held)).second)
      throw FormatError("the training", "sent too many calls whose backward is to come, or one twice");
  }
}

void OnlineJudge::take_backward(OnlineMessage message) {
  const auto found = held_.find(message.id);
  if (found == held_.end()) throw FormatError("the training", "sent the backward of an unknown call");
  HeldCall held = std::move(found->second);
  held_.erase(found);
  held_memory_ -= held.memory();
  add_tensors(held, message);
  const std::uint64_t id = message.id;
  held.backward = std::move(message);
  reply(id, judge_held(held));
}

void OnlineJudge::judge_rest() {
  const std::map<std::uint64_t, HeldCall> rest = std::exchange(held_, {});
  held_memory_ = 0;
  for (const auto& [id, held] : rest) judge_held(held);
}

/// Judges a call that waited. Returns true if calls of this operation cannot be made.
bool OnlineJudge::judge_held(const HeldCall& held) {
  const ApiName& api = held.forward.api;
  const std::string name = api.text();
  const std::string backward = held.backward ? held.backward->entry : std::string();
  // Treat the call as a dump of one call.
  CallPlan plan;
  PlannedCall call;
  call.api = api;
  call.name = name;
  call.forward = {0, held.forward.entry.size()};
  if (held.backward) call.backward = dump::EntryPlace{held.forward.entry.size(), backward.size()};
  call.skip = why_not_called(start_.lists, api);
  plan.calls.push_back(std::move(call));
  const auto json = memory_source(held.forward.entry + backward, name);
  const std::string no_folder;
  CallerJob job{options_, standards_, plan, *json, held.tensors, no_folder};
  if (table_) {
    job.seen = [&](CallDirection direction, const CallOutput& reference, const CallOutput& training,
                   const std::vector<std::size_t>& places) {
      table_->take({name, held.forward.step, direction, places}, training, reference);
    };
  }
  Caller caller(job, runner_);
  RequestBuilder builder(held.tensors, request_options_);
  const PreparedCall prepared = caller.prepare(0, builder);
  const bool refused = !prepared.refused.rows.empty();
  if (!refused) torch_ = runner_.start().torch;
  const OperationReport report = caller.make(0, prepared);
  conclude(report, held.forward.step, held.forward.id);
  if (table_) add_compared();
  const bool wrong = std::max(report.forward_verdict, report.backward_verdict) == PrecheckVerdict::error;
  if (wrong) save(held, backward);
  source_.release(held.forward);
  if (held.backward) source_.release(*held.backward);
  return refused;
}

void OnlineJudge::conclude(OperationReport report, std::uint64_t step, std::uint64_t order) {
  report.step = step;
  const OnlineFindings::NewFindings taken = findings_.take(report, step, order);
  if (taken.row) add_row(report);
  if (taken.new_error && told_++ < kMostTold)
    log_warning("online pre-check" + of_rank() + ", " + findings_.error_text(report.name));
}

void OnlineJudge::add_row(const OperationReport& report) {
  try {
    if (!files_) {
      const std::string folder = start_.folder + '/' + leaf_;
      create_directories(folder);
      ResultStyle style;
      style.steps = true;
      files_.emplace(ResultFiles::create(folder, claim_time_stamp(folder), style));
    }
    files_->add(report);
  } catch (const IoError& error) {
    warn_of_disk(error);
  }
}

void OnlineJudge::add_compared() {
  const std::string lines = table_->take_lines();
  if (lines.empty() || !files_) return;
  try {
    files_->add_compared(table_->header(), lines);
  } catch (const IoError& error) {
    warn_of_disk(error);
  }
}

void OnlineJudge::save(const HeldCall& held, const std::string& backward) {
  const std::string name = held.forward.api.text();
  const OnlineOperation& operation = findings_.operation(name);
  if (operation.wrong > kMostCases) return;
  try {
    cases_.save(fmt::format("step{}/{}", held.forward.step, held.forward.leaf),
                {held.forward.id, name, held.forward.entry, backward,
                 operation.frames == nullptr ? std::vector<std::string>() : *operation.frames},
                *held.tensors);
  } catch (const IoError& error) {
    warn_of_disk(error);
  }
}

void OnlineJudge::warn_of_disk(const IoError& error) {
  if (!std::exchange(warned_, true)) log_warning(error.what());
}

void OnlineJudge::tell_progress() {
  const auto now = std::chrono::steady_clock::now();
  if (now - told_at_ < kBetweenLines) return;
  told_at_ = now;
  if (!tells()) return;
  const std::size_t errors = findings_.of(PrecheckVerdict::error);
  log_info(fmt::format("online pre-check{}: step {}, {} judged, {} wrong", of_rank(), last_step_,
                       counted(findings_.calls(), "call"), counted(errors, "operation")));
}

}  // namespace msprobe::precheck
