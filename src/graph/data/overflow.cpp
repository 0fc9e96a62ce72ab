// SPDX-License-Identifier: Apache-2.0
#include "graph/data/overflow.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "dump/names.hpp"
#include "dump/nonfinite.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

using dump::Entry;
using dump::NodeKind;

/// The value that an operation may leave undefined: its first output, or its first input, which it
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
  LevelFinder(const Entry& entry, bool as_is) : entry_(entry), as_is_(as_is) {
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
    return entry_.is_container(found) ? found : Entry::kNone;
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

  bool is_anomalous(Entry::Index value) const {
    bool found = dump::shows_bad(entry_, value, as_is_);
    if (entry_.is(value, NodeKind::array)) {
      entry_.children(value, [&](Entry::Index element) { found = found || is_anomalous(element); });
    }
    return found;
  }

  std::string_view level_of_values() const {
    constexpr double kJump = 100;
    bool input = false;
    bool output = false;
    dump::NormJump jump(entry_, as_is_);
    each_input([&](Entry::Index value) {
      input = input || is_anomalous(value);
      jump.input(value);
    });
    each(outputs_, [&](Entry::Index value) {
      output = output || is_anomalous(value);
      jump.output(value);
    });
    if (output) return input ? "high" : "critical";
    if (input) return "medium";
    return jump.above(kJump) ? "high" : "";
  }

  static const Undefined* undefined_of(std::string_view node) {
    const auto parts = split(node, ".");
    if (parts.size() < 2) return nullptr;
    const std::string operation = lower_case(node.substr(0, parts[0].size() + 1 + parts[1].size()));
    const auto found =
        std::ranges::find_if(kUndefined, [&](const Undefined& each) { return each.operation == operation; });
    return found == kUndefined.end() ? nullptr : &*found;
  }

  /// Is any value anomalous, apart from the one that the operation leaves undefined?
  bool anomalous_beside(const Undefined& undefined) const {
    bool found = false;
    std::size_t place = 0;
    each(undefined.output ? outputs_ : positional_, [&](Entry::Index value) {
      if (place++ > 0) found = found || dump::shows_bad(entry_, value, as_is_);
    });
    if (!undefined.keyword.empty()) {
      each(keywords_, [&](Entry::Index value) {
        if (entry_.key(value) != undefined.keyword) found = found || dump::shows_bad(entry_, value, as_is_);
      });
    }
    return found;
  }

  const Entry& entry_;
  bool as_is_;
  Entry::Index positional_;
  Entry::Index keywords_;
  Entry::Index outputs_;
};

}  // namespace

std::string_view overflow_level(std::string_view node, const Entry& entry, const DataOptions& options) {
  if (!entry.is(0, NodeKind::object)) return {};
  return LevelFinder(entry, options.python_values).level(node);
}

}  // namespace msprobe::graph
