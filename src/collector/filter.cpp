// SPDX-License-Identifier: Apache-2.0
#include "collector/filter.hpp"

#include <algorithm>
#include <utility>

#include "dump/names.hpp"
#include "dump/operation_names.hpp"

namespace msprobe::collector {
namespace {

/// Communication, and kernels made for one device.
constexpr std::string_view kCorePrefixes[] = {"Distributed", "MindSpeed", "NPU"};

constexpr std::size_t kMostPassed = 4096;

bool is_module(std::string_view entry) {
  return entry.starts_with("Module.") || entry.starts_with("Cell.");
}

bool is_backward_of_module(std::string_view entry) {
  return is_module(entry) && entry.find(".backward.") != entry.npos;
}

}  // namespace

RiskLevel Filter::risk_of(std::string_view name) const {
  const auto call = dump::parse_entry_name(name);
  const std::string_view base = call && is_digits(call->call) ? call->base : name;
  const std::string_view operation = base.substr(base.rfind('.') + 1);
  if (const auto own = own_risks_.find(operation); own != own_risks_.end()) return own->second;
  if (std::ranges::binary_search(kCorePrefixes, base.substr(0, base.find('.')))) return RiskLevel::core;
  if (std::ranges::binary_search(dump::kCoreNames, operation)) return RiskLevel::core;
  return std::ranges::binary_search(dump::kLowNames, operation) ? RiskLevel::all : RiskLevel::focus;
}

Filter::Filter(const Config& config, Risks own_risks)
    : mix_(config.level == Level::mix),
      by_risk_(config.scope.empty() && config.list.empty() && config.risk_level != RiskLevel::all &&
               (config.level == Level::l1 || config.level == Level::mix)),
      risk_level_(config.risk_level),
      own_risks_(std::move(own_risks)),
      scope_(config.scope),
      list_(config.list),
      missing_scope_(config.scope),
      missing_list_(config.list) {
  missing_list_.insert(missing_list_.end(), config.tensor_list.begin(), config.tensor_list.end());
}

void Filter::look_for_names(std::string_view entry) {
  if (missing_scope_.empty() && missing_list_.empty()) return;
  std::erase_if(missing_scope_, [&](const std::string& name) { return entry == name; });
  std::erase_if(missing_list_, [&](const std::string& name) { return entry.find(name) != entry.npos; });
  if (passed_.size() < kMostPassed) passed_.emplace(entry);
}

std::vector<std::string> Filter::unmatched() const {
  std::vector<std::string> names = missing_scope_;
  names.insert(names.end(), missing_list_.begin(), missing_list_.end());
  return names;
}

/// The gradients of the parameters of a module, and of modules in it, come after its backward but belong to
/// the scope.
void Filter::close_scope(std::string_view entry) {
  if (in_scope_ && is_backward_of_module(entry))
    ended_module_ = entry.substr(0, entry.rfind('.', entry.rfind(".backward.") - 1) + 1);
  in_scope_ = false;
}

bool Filter::of_ended_module(std::string_view entry) {
  if (ended_module_.empty()) return false;
  if (entry.find(".parameters_grad.") != entry.npos) return entry.starts_with(ended_module_);
  if (entry.find(".forward") != entry.npos) ended_module_.clear();
  return false;
}

bool Filter::listed(std::string_view entry) const {
  if (list_.empty()) return true;
  return std::ranges::any_of(list_, [&](const std::string& name) { return entry.find(name) != entry.npos; });
}

void Filter::open_module(std::string_view entry) {
  look_for_names(entry);
  if (!scope_.empty() && entry == scope_[0]) in_scope_ = true;
  if (mix_ && !list_.empty() && listed(entry)) windows_.emplace(entry);
}

void Filter::close_module(std::string_view entry) {
  look_for_names(entry);
  if (!scope_.empty() && entry == scope_[1]) close_scope(entry);
  if (const auto window = windows_.find(entry); window != windows_.end()) windows_.erase(window);
}

bool Filter::check(std::string_view entry) {
  look_for_names(entry);
  if (by_risk_) {
    if (is_module(entry)) return true;
    const RiskLevel risk = risk_of(entry);
    return risk_level_ == RiskLevel::core ? risk == RiskLevel::core : risk != RiskLevel::all;
  }
  if (scope_.empty()) return !windows_.empty() || listed(entry);
  // A module opens its window when it begins, an API with its input. A last module closes the window when it
  // ends at level L0, and at any level if that is its backward; any other last call closes it with its input,
  // so that its output is outside.
  if (!is_module(entry) && entry == scope_[0]) in_scope_ = true;
  const bool result = (in_scope_ || of_ended_module(entry)) && (!windows_.empty() || listed(entry));
  if (entry == scope_[1] && (mix_ ? !is_backward_of_module(entry) : !is_module(entry))) close_scope(entry);
  return result;
}

void Filter::next_step() {
  in_scope_ = false;
  ended_module_.clear();
  windows_.clear();
}

}  // namespace msprobe::collector
