// SPDX-License-Identifier: Apache-2.0
// Which events are recorded: scope, list, risk level and data mode. One filter for one step of one session;
// the caller keeps calls from different threads apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/config.hpp"

namespace msprobe::collector {

enum class EventKind : std::uint8_t { api, module };

class Filter {
 public:
  explicit Filter(const Config& config);

  /// An event begins: `entry` is its full name in dump.json. Returns whether its input is recorded. Modules
  /// open and close windows, so begin and end must come for each of them, in both directions.
  bool begin(EventKind kind, std::string_view entry, bool backward);
  /// Its end: whether its output (of a forward its parameters, too) is recorded.
  bool end(EventKind kind, std::string_view entry, bool backward);
  /// Whether the gradients of a module's parameters are recorded; `entry` is "<module>.parameters_grad.<k>".
  bool parameter_gradient(std::string_view entry) const;
  /// All windows are closed again.
  void next_step();

 private:
  bool passes_names(EventKind kind, std::string_view entry) const;
  bool passes_risk(EventKind kind, std::string_view entry) const;

  Config config_;
  bool in_scope_ = false;             // between the two names of `scope`
  std::vector<std::string> windows_;  // modules named by `list` that have begun and not ended
};

}  // namespace msprobe::collector
