// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/recorders.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <unordered_set>

#include "dump/names.hpp"
#include "pairing/operations.hpp"

namespace msprobe::diagnosis {
namespace {

/// As level L0 does.
bool records_modules_alone(const dump::Side& side) {
  bool modules = false;
  for (const dump::Api& api : side.apis) {
    const dump::EntryName parsed = side.parsed_name(api);
    if (parsed.direction == dump::Direction::parameters_grad) continue;
    if (!parsed.is_module) return false;
    modules = true;
  }
  return modules;
}

}  // namespace

bool is_left_out_by_some(std::string_view base) {
  const auto [prefix, operation] = dump::split_last(base);
  return is_left_out(operation) || (prefix == "VF" && is_recurrent(operation));
}

OneRecorder::OneRecorder(const dump::Side& side, const dump::Side& other)
    : by_level_(records_modules_alone(other) && !records_modules_alone(side)) {
  const auto base_of = [this](const dump::Side& of, const dump::Api& api) -> std::string_view {
    const dump::EntryName parsed = of.parsed_name(api);
    const bool counts = !parsed.is_module && (parsed.direction == dump::Direction::forward ||
                                              parsed.direction == dump::Direction::backward);
    return counts && (by_level_ || is_left_out_by_some(parsed.base)) ? parsed.base : std::string_view();
  };
  std::unordered_set<std::string_view> known;
  for (const dump::Api& api : other.apis) {
    if (const std::string_view base = base_of(other, api); !base.empty()) known.insert(base);
  }
  const bool same_recorder = !side.header.recorder.empty() && side.header.recorder == other.header.recorder;
  by_recorder_ = !same_recorder || std::ranges::none_of(known, is_left_out, [](std::string_view base) {
    return dump::split_last(base).second;
  });
  std::unordered_set<std::string_view> named;
  for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
    const std::string_view base = base_of(side, side.apis[i]);
    if (base.empty() || known.contains(base)) continue;
    if (alone_.empty()) alone_.resize(side.apis.size());
    alone_[i] = true;
    ++calls_;
    if (named.insert(base).second) names_.emplace_back(base);
  }
}

std::string OneRecorder::names() const {
  constexpr std::size_t kNamed = 5;
  const std::string first =
      fmt::format("{}", fmt::join(std::span(names_).first(std::min(names_.size(), kNamed)), ", "));
  return names_.size() > kNamed ? fmt::format("{} and {} more", first, names_.size() - kNamed) : first;
}

}  // namespace msprobe::diagnosis
