// SPDX-License-Identifier: Apache-2.0
// Rates JSON and YAML by what a loader may import or call because of their content. Strict parsers read them
// to the end.
#pragma once

#include <string_view>
#include <vector>

#include "inspect/facts.hpp"

namespace msprobe::inspect {

/// The findings by which a file is more than pure data, without their place; empty for pure data. `name` may
/// be a path; data/inspect_keys.yaml gives some keys a meaning by the file's name.
/// `many`: a file with one value per line.
std::vector<ContentFacts> rate_json(std::string_view text, std::string_view name, bool many = false);
std::vector<ContentFacts> rate_yaml(std::string_view text, std::string_view name);
/// Rates only the tags, of a text that may stop being YAML at some place.
std::vector<ContentFacts> rate_tags(std::string_view text);
/// For lines of TOML and similar formats: `key = value`. Other syntax is not interpreted.
std::vector<ContentFacts> rate_assignments(std::string_view text);
/// Rates a text under a name, as in the metadata of a file.
std::vector<ContentFacts> rate_value(std::string_view key, std::string_view value);

}  // namespace msprobe::inspect
