// SPDX-License-Identifier: Apache-2.0
// Keys of a configuration that do nothing: those that nobody knows, and those of the Python tool that have no
// effect here. A name that is misspelt would otherwise go unnoticed until the run is over.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::collector {

struct KeysWithoutEffect {
  std::vector<std::string> lines;  // one for each
  std::vector<std::string> names;  // "levl", "statistics.lst"
};

/// Of the file and of its sections; `name` stands for the file.
KeysWithoutEffect keys_without_effect(const nlohmann::ordered_json& root, std::string_view task,
                                      const std::string& name);

}  // namespace msprobe::collector
