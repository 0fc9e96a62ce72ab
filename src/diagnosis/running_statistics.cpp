// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/running_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "diagnosis/argument_names.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::Side;
using measuring::number_of;
using pairing::kNone;

/// The root mean square of a tensor's elements.
double size_of(const Side& side, const Item& item) {
  const auto n = std::max<std::uint64_t>(measuring::elements_of(side.text(item.shape)), 1);
  return std::abs(number_of(side, item, dump::kNorm)) / std::sqrt(static_cast<double>(n));
}

}  // namespace

RunningStatistics::RunningStatistics(Walk& walk) : WalkRule(walk), calls_{calls_of(false), calls_of(true)} {
  for (const auto& [api, before] : calls_[true].before) {
    if (before != kNone) continue;
    for (const std::uint32_t i : calls_[true].items.at(api))
      if (history_.running.contains(name_of(true, i))) contents_.insert(walk_.target_keys.of(i));
  }
  contents_.erase(0);
}

/// The module and the operation of a call; empty where the module is not known.
std::string RunningStatistics::module_of(bool is_target, std::uint32_t api) const {
  std::string path = is_target ? walk_.module_around(api, kNone) : walk_.module_around(kNone, api);
  if (path.empty()) return path;
  return fmt::format("{}\n{}", pairing::without_wrappers(path),
                     (is_target ? target_ : golden_).parsed_name(api).operation());
}

RunningStatistics::NormCalls RunningStatistics::calls_of(bool is_target) const {
  const Side& side = is_target ? target_ : golden_;
  NormCalls calls;
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    const dump::EntryName name = side.parsed_name(api);
    if (name.direction != dump::Direction::forward || !pairing::takes_parameters(name.operation())) continue;
    std::vector<std::uint32_t> items;
    for (const std::uint32_t i : side.apis[api].items()) {
      const Item& item = side.items[i];
      if (item.state != dump::State::input || !item.is_tensor) continue;
      const auto position = pairing::position_of(side, item);
      if (position && pairing::is_running_statistic(name.operation(), *position)) items.push_back(i);
    }
    std::string module = items.empty() ? std::string() : module_of(is_target, api);
    if (module.empty()) continue;
    calls.items.emplace(api, std::move(items));
    const auto [last, added] = calls.last.try_emplace(std::move(module), api);
    calls.before.emplace(api, added ? kNone : std::exchange(last->second, api));
  }
  return calls;
}

/// The name of a statistic, the same on both sides and in every step.
std::uint64_t RunningStatistics::name_of(bool is_target, std::uint32_t item) const {
  const Side& side = is_target ? target_ : golden_;
  const Item& statistic = side.items[item];
  return std::hash<std::string>{}(
      fmt::format("{}\n{}", module_of(is_target, statistic.api), pairing::place_text(side, statistic)));
}

std::vector<std::uint64_t> RunningStatistics::names_at(std::uint32_t target_api) const {
  std::vector<std::uint64_t> names;
  const auto items = calls_[true].items.find(target_api);
  if (items == calls_[true].items.end()) return names;
  for (const std::uint32_t i : items->second) names.push_back(name_of(true, i));
  return names;
}

std::optional<RunningStatistics::Left> RunningStatistics::left(const EntryPair& entry,
                                                               std::uint32_t item) const {
  const auto before = calls_[true].before.find(entry.target);
  const auto golden_before = calls_[false].before.find(entry.golden);
  if (before == calls_[true].before.end() || golden_before == calls_[false].before.end()) return std::nullopt;
  Left left;
  left.by = before->second;
  const std::uint32_t partner = left.by == kNone ? kNone : alignment_.golden_of[left.by];
  const auto explained = history_.running.find(name_of(true, item));
  if (partner != golden_before->second || explained == history_.running.end()) return std::nullopt;
  const double size = size_of(golden_, golden_.items[errors_.golden_item[item]]);
  left.error = explained->second / size;
  return size > 0 ? std::optional(left) : std::nullopt;
}

/// The weight of the input in the statistics; 1 where it is not recorded or has another meaning.
double RunningStatistics::momentum_of(std::uint32_t golden_api) const {
  for (const std::uint32_t i : golden_.apis[golden_api].items()) {
    const Item& item = golden_.items[i];
    if (item.is_tensor || item.state != dump::State::input || golden_.header.is_mindspore()) continue;
    const std::string name =
        argument_text(golden_, walk_.golden_name(golden_api), pairing::place_text(golden_, item));
    const double momentum = number_of(golden_, item, dump::kMax);
    if (name.starts_with("momentum") && momentum >= 0 && momentum <= 1) return momentum;
  }
  return 1;
}

/// A call adds the mean and the variance of its input, weighted by the momentum. By the inequality of Cauchy
/// and Schwarz, the root mean square of the means' errors is at most that of the elements' errors, and that
/// of the variances' at most 2 + e times as much, in parts of the size of the input or its square.
void RunningStatistics::remember(EntryPair& entry) {
  const auto items = calls_[true].items.find(entry.target);
  if (items == calls_[true].items.end()) return;
  const std::uint32_t input = target_.apis[entry.target].first;
  const std::uint32_t partner = errors_.golden_item[input];
  const bool compared = partner != kNone && !std::isnan(errors_.e[input]);
  const double all_inputs = std::exchange(entry.e_in, walk_.e_of(input));
  const double e = std::max(walk_.floor_of(entry), entry.hidden) + entry.u;
  entry.e_in = all_inputs;
  for (const std::uint32_t i : items->second) {
    history_.running.erase(name_of(true, i));
    if (!compared || errors_.golden_item[i] == kNone) continue;
    const double size = size_of(golden_, golden_.items[partner]);
    const bool is_first = i == items->second.front();
    const double added = is_first ? e * size : (2 + e) * e * size * size;
    const double momentum = momentum_of(entry.golden);
    const double kept = walk_.e_of(i) * size_of(golden_, golden_.items[errors_.golden_item[i]]);
    const double explained = (1 - momentum) * kept + momentum * added;
    history_.running[name_of(true, i)] = std::isnan(explained) ? measuring::kInfinite : explained;
  }
}

void RunningStatistics::finish() {
  for (const bool is_target : {true, false}) {
    const NormCalls& calls = calls_[is_target ? 1 : 0];
    const std::vector<std::uint32_t>& partners = is_target ? alignment_.golden_of : alignment_.target_of;
    for (const auto& [module, api] : calls.last) {
      const auto other = calls_[is_target ? 0 : 1].last.find(module);
      if (other != calls_[is_target ? 0 : 1].last.end() && partners[api] == other->second) continue;
      for (const std::uint32_t i : calls.items.at(api)) history_.running.erase(name_of(is_target, i));
    }
  }
}

}  // namespace msprobe::diagnosis
