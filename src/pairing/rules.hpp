// SPDX-License-Identifier: Apache-2.0
// The thresholds and lists behind the verdicts: data/compare_rules.yaml, built in, replaceable with --rules.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dump/communication.hpp"

namespace msprobe::pairing {

struct Thresholds {
  double ratio_input_above = 0;
  double ratio_output_below = 0;
  double norm_error_input_below = 0;
  double norm_error_output_above = 0;
  double norm_error_growth_above = 0;
  double norm_error_from_zero_above = 0;
  double cosine_input_above = 0;
  double cosine_drop_above = 0;
};

struct Rules : Thresholds {
  std::set<std::string, std::less<>> never_judged;
  std::set<std::string, std::less<>> outputs_only;
  std::vector<std::set<std::string, std::less<>>> dtype_groups;
  std::vector<std::set<std::string, std::less<>>> dtype_classes;  // across frameworks

  // For the search for the first difference (-da).
  std::map<std::string, double, std::less<>> differs_above;  // by metric
  std::map<std::string, std::set<std::size_t>, std::less<>> ignored_outputs;
  std::vector<std::string> never_first;
  dump::CommunicationNames communication;
  std::set<std::string, std::less<>> names_source;
  std::vector<std::string> framework_frames;
};

/// The built-in rules.
Rules default_rules();

/// The built-in rules, some of them replaced by those of the file. FormatError names file, line and key for
/// anything that is not a rule or has the wrong type.
Rules load_rules(const std::string& path);

}  // namespace msprobe::pairing
