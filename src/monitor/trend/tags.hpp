// SPDX-License-Identifier: Apache-2.0
// The words by which the viewer finds targets (docs/formats.md, "Trend tags").
#pragma once

#include <string_view>
#include <vector>

#include "monitor/trend/trend_database.hpp"

namespace msprobe::monitor {

/// Of a monitor's series: layers.0 is a layer, every word is a module.
std::vector<TrendTag> series_tags(std::string_view target);

/// Of what a dump holds: index (input.0), default (Module, parameters), layer (layers.0), module (what is
/// between), function (Functional.linear).
std::vector<TrendTag> dump_tags(std::string_view target);

}  // namespace msprobe::monitor
