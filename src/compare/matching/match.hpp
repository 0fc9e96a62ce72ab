// SPDX-License-Identifier: Apache-2.0
// The ways of pairing that the command line offers (spec/compare.md 5).
#pragma once

#include <memory>
#include <string>

#include "compare/matching/matching.hpp"

namespace msprobe::compare {

enum class Method {
  exact,  // by row name
  data,   // rows by a table of names
};

/// A mapping file, read and checked.
struct Mapping;

struct MatchOptions {
  Method method = Method::exact;
  std::string mapping_file;                // YAML; empty: what the method knows by itself
  std::shared_ptr<const Mapping> mapping;  // what load_mapping() made of it
  bool python_rules = false;               // pair as the Python tool does, defects included
};

/// Reads the mapping file (the built-in table too), so that what is wrong with it is told before any work.
/// IoError, FormatError.
void load_mapping(MatchOptions& options);

/// Pairs every row of the target, by a mapping that load_mapping() read.
Matching match(const Side& target, const Side& golden, const MatchOptions& options, const Rules& rules);

}  // namespace msprobe::compare
