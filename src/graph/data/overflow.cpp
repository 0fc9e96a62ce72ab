// SPDX-License-Identifier: Apache-2.0
#include "graph/data/overflow.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

#include "dump/names.hpp"

namespace msprobe::graph {
namespace {

using dump::Entry;
using dump::NodeKind;

/// What an operation may leave undefined: the first of its outputs, or the first of its inputs, which it
/// overwrites.
struct Undefined {
  std::string_view operation;
  bool output = false;
  std::string_view keyword = {};  // the same argument by name
};
constexpr std::array<Undefined, 10> kUndefined = {{
    {"torch.empty", true},
    {"torch.empty_like", true},
    {"torch.empty_strided", true},
    {"tensor.masked_fill_"},
    {"distributed.all_gather"},
    {"distributed.all_gather_into_tensor"},
    {"distributed.reduce_scatter_tensor"},
    {"distributed._reduce_scatter_base"},
    {"distributed.recv", false, "tensor"},
    {"distributed.reduce_scatter", false, "output"},
}};

class LevelFinder {
 public:
  explicit LevelFinder(const Entry& entry) : entry_(entry) {
    positional_ = section("input_args");
    if (positional_ == Entry::kNone) positional_ = section("input");
    keywords_ = section("input_kwargs");
    outputs_ = section("output");
  }

  std::string_view level(std::string_view node) const {
    const std::string_view found = level_of_values();
    if (found.empty()) return {};
    const Undefined* undefined = undefined_of(node);
    return undefined == nullptr || anomalous_beside(*undefined) ? found : std::string_view();
  }

 private:
  Entry::Index section(std::string_view name) const {
    const Entry::Index found = entry_.find(0, name);
    return found != Entry::kNone && (entry_.is(found, NodeKind::array) || entry_.is(found, NodeKind::object))
               ? found
               : Entry::kNone;
  }

  template <typename Visit>
  void each(Entry::Index section, Visit&& visit) const {
    if (section != Entry::kNone) entry_.children(section, visit);
  }
  template <typename Visit>
  void each_input(Visit&& visit) const {
    each(positional_, visit);
    each(keywords_, visit);
  }

  bool is_anomalous_object(Entry::Index value) const {
    if (!entry_.is(value, NodeKind::object)) return false;
    for (const std::string_view key : {"Max", "Min", "Mean"}) {
      const Entry::Index statistic = entry_.find(value, key);
      if (statistic == Entry::kNone || entry_.is(statistic, NodeKind::array) ||
          entry_.is(statistic, NodeKind::object))
        continue;
      std::string text = entry_.python_str(statistic);
      std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
      if (text == "inf" || text == "-inf" || text == "nan") return true;
    }
    return false;
  }

  bool is_anomalous(Entry::Index value) const {
    bool found = is_anomalous_object(value);
    if (entry_.is(value, NodeKind::array)) {
      entry_.children(value, [&](Entry::Index element) { found = found || is_anomalous(element); });
    }
    return found;
  }

  void raise(std::optional<double>& largest, Entry::Index value) const {
    const Entry::Index type = entry_.find(value, "type");
    const Entry::Index norm = entry_.find(value, "Norm");
    if (type == Entry::kNone || norm == Entry::kNone || entry_.text(type) != "torch.Tensor") return;
    if (!entry_.is(norm, NodeKind::integer) && !entry_.is(norm, NodeKind::real)) return;
    const double number = entry_.number(norm);
    if (!std::isnan(number)) largest = std::max(largest.value_or(number), number);
  }

  std::string_view level_of_values() const {
    constexpr double kJump = 100;
    bool input = false;
    bool output = false;
    std::optional<double> input_norm;
    std::optional<double> output_norm;
    each_input([&](Entry::Index value) {
      input = input || is_anomalous(value);
      raise(input_norm, value);
    });
    each(outputs_, [&](Entry::Index value) {
      output = output || is_anomalous(value);
      raise(output_norm, value);
    });
    if (output) return input ? "high" : "critical";
    if (input) return "medium";
    if (!input_norm || !output_norm) return {};
    const bool jump = *input_norm == 0 ? *output_norm > kJump : *output_norm / *input_norm > kJump;
    return jump ? "high" : "";
  }

  static const Undefined* undefined_of(std::string_view node) {
    const auto parts = dump::split(node);
    if (parts.size() < 2) return nullptr;
    std::string operation(node.substr(0, parts[0].size() + 1 + parts[1].size()));
    std::transform(operation.begin(), operation.end(), operation.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    const auto found = std::find_if(kUndefined.begin(), kUndefined.end(),
                                    [&](const Undefined& each) { return each.operation == operation; });
    return found == kUndefined.end() ? nullptr : &*found;
  }

  /// Is a value anomalous that the operation does define?
  bool anomalous_beside(const Undefined& undefined) const {
    bool found = false;
    std::size_t place = 0;
    each(undefined.output ? outputs_ : positional_, [&](Entry::Index value) {
      if (place++ > 0) found = found || is_anomalous_object(value);
    });
    if (!undefined.keyword.empty()) {
      each(keywords_, [&](Entry::Index value) {
        if (entry_.key(value) != undefined.keyword) found = found || is_anomalous_object(value);
      });
    }
    return found;
  }

  const Entry& entry_;
  Entry::Index positional_;
  Entry::Index keywords_;
  Entry::Index outputs_;
};

}  // namespace

std::string_view overflow_level(std::string_view node, const Entry& entry) {
  if (!entry.is(0, NodeKind::object)) return {};
  return LevelFinder(entry).level(node);
}

}  // namespace msprobe::graph
