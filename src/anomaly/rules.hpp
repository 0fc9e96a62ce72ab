// SPDX-License-Identifier: Apache-2.0
// The lists that the analysis uses: data/anomaly_rules.yaml, built in, replaceable with --rules.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dump/communication.hpp"

namespace msprobe::anomaly {

using NameSet = std::set<std::string, std::less<>>;

/// Arguments by position or by keyword.
struct ArgumentPlaces {
  std::set<std::size_t> positions;
  NameSet names;
};

struct ExpectedBad {
  ArgumentPlaces inputs;
  std::set<std::size_t> outputs;
};

struct AnomalyRules {
  dump::CommunicationNames communication;
  std::vector<std::string> never_blamed;
  NameSet names_source;
  NameSet names_destination;
  std::map<std::string, ArgumentPlaces, std::less<>> write_only_inputs;
  double norm_jump_above = 0;
  std::map<std::string, ExpectedBad, std::less<>> expected_bad;
  std::map<std::string, double, std::less<>> largest_finite;
  std::vector<std::string> framework_frames;

  /// Does the name of the entry hold one of never_blamed?
  bool is_never_blamed(std::string_view entry) const;
  bool is_communication(std::string_view entry) const { return communication.has(entry); }
};

/// The built-in rules.
AnomalyRules default_rules();

/// The built-in rules, replaced by those in the file. FormatError names file, line and key for anything that
/// is not a rule or has the wrong type.
AnomalyRules load_rules(const std::string& path);

}  // namespace msprobe::anomaly
