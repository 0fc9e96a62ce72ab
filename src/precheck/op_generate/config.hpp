// SPDX-License-Identifier: Apache-2.0
// The settings of a case, from options or from the configuration file of releases 8.x.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "support/command.hpp"

namespace msprobe::precheck {

enum class CaseData : std::uint8_t {
  automatic,  // as recorded where tensors were dumped, else made of their ranges
  random,
  real,
};

struct CaseRequest {
  Framework framework = Framework::unspecified;  // that the dump has to be of
  std::string dump_json;                         // empty: `extract` is read in its place
  std::string extract;   // of releases 8.x: the entries of the operation alone; empty: none
  std::string api;       // "Functional.softmax.0"
  bool backward = true;  // if it was recorded
  bool needs_backward = false;
  CaseData data = CaseData::automatic;
  std::optional<std::uint32_t> seed;  // of random data; without it the operation's name gives one
  unsigned iterations = 1;
};

inline constexpr unsigned kMostIterations = 1000;

/// IoError; FormatError that names the file and the key for what is wrong.
CaseRequest read_case_config(const std::string& path);

}  // namespace msprobe::precheck
