// SPDX-License-Identifier: Apache-2.0
#include "monitor/analyze/ranking.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "support/ascii.hpp"

namespace msprobe::monitor {
namespace {

/// Parts of one step, in their order.
enum AlertPhase : std::int64_t {
  kLeftBehind,
  kForward,
  kBackward,
  kCommunication,
  kReduced,
  kDirection,
  kUpdated,
  kUnknown
};

AlertPhase phase_of(std::string_view task) {
  static constexpr std::array<std::pair<std::string_view, AlertPhase>, 13> kPhases = {{
      {"exp_avg", kLeftBehind},
      {"exp_avg_sq", kLeftBehind},
      {"param_origin", kLeftBehind},
      {"actv", kForward},
      {"actv_grad", kBackward},
      {"acc_grad", kBackward},
      {"pre_grad", kBackward},
      {"grad_unreduced", kBackward},
      {"post_grad", kReduced},
      {"grad_reduced", kReduced},
      {"mg_direction", kDirection},
      {"param_updated", kUpdated},
      {"comm", kCommunication},
  }};
  for (const auto& [name, phase] : kPhases) {
    if (task == name) return phase;
  }
  return task.starts_with("pre_") || task.starts_with("post_") ? kCommunication : kUnknown;
}

bool in_micro_step(AlertPhase phase) {
  return phase == kForward || phase == kBackward;
}

/// The record's micro step. The Python tool always writes 0 there; then the tag's.
std::optional<std::int64_t> micro_step_of(const Alert& alert) {
  if (alert.micro_step != 0) return alert.micro_step;
  const std::string_view name = std::string_view(alert.tag).substr(0, alert.tag.find('/'));
  const std::size_t last = name.rfind(':');
  if (last == std::string_view::npos || name.find(':') == last) return std::nullopt;
  const auto value = whole_number<std::int64_t>(name.substr(last + 1));
  return value && *value >= 0 ? value : std::nullopt;
}

using Place = std::array<std::int64_t, 8>;

std::int64_t reversed(std::int64_t number) {
  return ~number;  // the order turned round, without overflow
}

Place place_of(const Alert& alert, std::int64_t last_micro_step) {
  const AlertPhase phase = phase_of(alert.task());
  const bool micro = in_micro_step(phase);
  const bool down = phase == kBackward || phase == kReduced;
  return {alert.step,
          phase == kLeftBehind ? 0
          : micro              ? 1
                               : 2,
          micro ? micro_step_of(alert).value_or(last_micro_step) : 0,
          phase,
          down ? reversed(alert.vpp_stage) : alert.vpp_stage,
          down ? reversed(alert.pp_stage) : alert.pp_stage,
          alert.call_id < 0 ? std::numeric_limits<std::int64_t>::max() : alert.call_id,
          alert.rank};
}

}  // namespace

void rank_alerts(std::vector<Alert>& alerts) {
  // A parameter's gradient is there when the last micro batch has come; its tag does not say which one that
  // is.
  std::map<std::int64_t, std::int64_t> last_micro_steps;
  for (const Alert& alert : alerts) {
    std::int64_t& last = last_micro_steps[alert.step];
    if (in_micro_step(phase_of(alert.task()))) last = std::max(last, micro_step_of(alert).value_or(0));
  }
  std::vector<std::pair<Place, Alert>> placed;
  placed.reserve(alerts.size());
  for (Alert& alert : alerts) {
    const Place place = place_of(alert, last_micro_steps[alert.step]);
    placed.emplace_back(place, std::move(alert));
  }
  std::ranges::stable_sort(placed, {}, &std::pair<Place, Alert>::first);
  alerts.clear();
  for (auto& [place, alert] : placed) alerts.push_back(std::move(alert));
}

}  // namespace msprobe::monitor
