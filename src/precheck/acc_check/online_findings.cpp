// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "precheck/acc_check/check.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::size_t kShownOperations = 10;
// A step of a large training has some hundred thousand calls.
constexpr std::size_t kMostOperations = std::size_t{1} << 20;

void check_count(std::size_t count) {
  if (count > kMostOperations)
    throw FormatError("the training", fmt::format("sent more than {} operations", kMostOperations));
}

std::string since_text(const OnlineOperation& operation) {
  std::string text = fmt::format("since step {}", operation.since);
  if (operation.right_until) return text + fmt::format(", right until step {}", *operation.right_until);
  return text + ", where it was judged first";
}

std::string named(const std::string& name, const OnlineOperation& operation) {
  std::string text = display(name);
  if (!operation.place.empty()) text += " in " + display(operation.place);
  return text;
}

}  // namespace

void OnlineFindings::place(const std::string& name, const std::string& place, const std::string& where,
                           const std::vector<std::string>& frames) {
  OnlineOperation& operation = known_[name].operation;
  operation.place = place;
  operation.where = where;
  operation.frames = &*stacks_.insert(frames).first;
  check_count(std::max(known_.size(), stacks_.size()));
}

OnlineFindings::NewFindings OnlineFindings::take(const OperationReport& report, std::uint64_t step,
                                                 std::uint64_t order) {
  Known& known = known_[report.name];
  check_count(known_.size());
  OnlineOperation& operation = known.operation;
  const PrecheckVerdict worst = std::max(report.forward_verdict, report.backward_verdict);
  NewFindings taken;
  taken.row =
      !known.has_row || known.forward != report.forward_verdict || known.backward != report.backward_verdict;
  known.has_row = true;
  known.forward = report.forward_verdict;
  known.backward = report.backward_verdict;
  if (worst != PrecheckVerdict::skip) {
    ++operation.judged;
    ++calls_;
  }
  operation.excluded = report.excluded;
  operation.wrong += worst == PrecheckVerdict::error;
  if (worst > operation.worst) {
    taken.new_error = worst == PrecheckVerdict::error;
    known.order = order;
    operation.since = step;
    operation.right_until = known.right;
    operation.in_backward = report.forward_verdict != worst;
    operation.worst = worst;
    operation.reason = report.reason;
  }
  if (worst < PrecheckVerdict::error) known.right = step;
  return taken;
}

void OnlineFindings::cover(Coverage& coverage) const {
  for (const auto& [name, known] : known_) {
    if (!known.has_row) continue;  // its place alone is known
    OperationReport report;
    report.name = name;
    report.forward_verdict = known.operation.judged > 0 ? PrecheckVerdict::pass : known.operation.worst;
    report.reason = known.operation.reason;
    report.excluded = known.operation.excluded;
    precheck::cover(report, coverage);
  }
}

std::size_t OnlineFindings::of(PrecheckVerdict verdict) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(known_, [&](const auto& one) { return one.second.operation.worst == verdict; }));
}

std::string OnlineFindings::error_text(const std::string& name) const {
  const OnlineOperation& operation = known_.at(name).operation;
  return fmt::format("step {}: {}{} is wrong: {}", operation.since,
                     operation.in_backward ? "the backward of " : "", named(name, operation),
                     display(operation.reason));
}

std::string OnlineFindings::lines(bool color) const {
  std::vector<const std::pair<const std::string, Known>*> order;
  for (const auto& one : known_) {
    if (one.second.operation.worst == PrecheckVerdict::error) order.push_back(&one);
  }
  // Within a step, forward entries come before backward entries, which run in the reverse order.
  std::ranges::sort(order, [](const auto* a, const auto* b) {
    const OnlineOperation& first = a->second.operation;
    const OnlineOperation& second = b->second.operation;
    if (first.since != second.since) return first.since < second.since;
    if (first.in_backward != second.in_backward) return second.in_backward;
    return first.in_backward ? a->second.order > b->second.order : a->second.order < b->second.order;
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), kShownOperations); ++i) {
    const std::string& name = order[i]->first;
    const OnlineOperation& operation = order[i]->second.operation;
    text += "\n  " + report::paint("error", report::Color::red, color);
    text += fmt::format("    {}{}, {}", named(name, operation), operation.in_backward ? ", backward" : "",
                        since_text(operation));
    text += fmt::format(" ({} of {} {})", operation.wrong, operation.judged,
                        operation.judged == 1 ? "call" : "calls");
    text += "\n           " + display(operation.reason);
    if (!operation.where.empty()) text += "\n           " + display(operation.where);
  }
  if (order.size() > kShownOperations)
    text += fmt::format("\n  and {} more", human_count(order.size() - kShownOperations));
  return text;
}

}  // namespace msprobe::precheck
