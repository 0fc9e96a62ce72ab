// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/recorders.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>

#include "dump/names.hpp"

namespace msprobe::diagnosis {
namespace {

// Of the names that the collector records at risk level ALL alone, those that keep the elements as they are,
// or take no part of the program's data. A missing `tril` or `repeat` changes what is computed.
constexpr std::array<std::string_view, 40> kLeftOut = {
    "align_as",   "align_to",   "atleast_1d", "atleast_2d", "atleast_3d", "bfloat16",  "bool",
    "byte",       "char",       "clone",      "contiguous", "detach",     "double",    "empty",
    "empty_like", "expand",     "expand_as",  "flatten",    "float",      "full_like", "half",
    "int",        "long",       "movedim",    "numpy",      "ones_like",  "permute",   "ravel",
    "reshape",    "reshape_as", "squeeze",    "swapaxes",   "to",         "transpose", "type_as",
    "unflatten",  "unsqueeze",  "view",       "view_as",    "zeros_like"};

bool is_at_level_all(std::string_view base) {
  return std::binary_search(kLeftOut.begin(), kLeftOut.end(), dump::split_last(base).second);
}

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
  constexpr std::string_view kRecurrent[] = {"VF.lstm", "VF.gru", "VF.rnn_tanh", "VF.rnn_relu"};
  if (std::find(std::begin(kRecurrent), std::end(kRecurrent), base) != std::end(kRecurrent)) return true;
  return is_at_level_all(base);
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
  by_recorder_ = !same_recorder || std::none_of(known.begin(), known.end(), is_at_level_all);
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
