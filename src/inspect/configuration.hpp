// SPDX-License-Identifier: Apache-2.0
// JSON and YAML, read to their end by strict parsers: what a loader may import or call by what is in them.
#pragma once

#include <string_view>
#include <vector>

#include "inspect/facts.hpp"

namespace msprobe::inspect {

/// What keeps a file from being mere data, without the place; nothing for mere data. `name` may be a path, by
/// which data/inspect_keys.yaml knows what some keys mean.
std::vector<ContentFacts> rate_json(std::string_view text, std::string_view name);
/// A value in each line.
std::vector<ContentFacts> rate_json_lines(std::string_view text, std::string_view name);
std::vector<ContentFacts> rate_yaml(std::string_view text, std::string_view name);
/// The tags alone, of a text that may be no YAML from some place on.
std::vector<ContentFacts> rate_tags(std::string_view text);
/// Lines of TOML and its relatives: `key = value`. What else they mean is not read.
std::vector<ContentFacts> rate_assignments(std::string_view text);
/// A text under a name, as the metadata of a file have it.
std::vector<ContentFacts> rate_value(std::string_view key, std::string_view value);

}  // namespace msprobe::inspect
