// SPDX-License-Identifier: Apache-2.0
// Makes the words by which the viewer finds targets of the trend database (docs/formats.md, "The trend
// database").
#pragma once

#include <string_view>
#include <vector>

#include "monitor/trend/trend_database.hpp"

namespace msprobe::monitor {

/// The tags of a series of a monitor: layers.0 is a layer, every word is a module.
std::vector<TrendTag> series_tags(std::string_view target);

/// The tags of an item of a dump: index (input.0), default (Module, parameters), layer (layers.0), module
/// (the part in between), function (Functional.linear).
std::vector<TrendTag> dump_tags(std::string_view target);

}  // namespace msprobe::monitor
