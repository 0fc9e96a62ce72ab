// SPDX-License-Identifier: Apache-2.0
// The ways of pairing that the command line offers (spec/compare.md 5).
#pragma once

#include <memory>
#include <string>

#include "compare/matching/matching.hpp"
#include "compare/matching/traits.hpp"

namespace msprobe::compare {

enum class Method {
  exact,  // by row name
  api,    // operations of MindSpore by what they are called in PyTorch
  cell,   // modules by a table of names
  data,   // rows by a table of names
  layer,  // by where an operation stands in the model: stack.json and construct.json
};

/// A mapping file, read and checked.
struct Mapping;

struct MatchOptions {
  Method method = Method::exact;
  bool fuzzy = false;                      // call numbers do not matter, the order of execution does
  std::string mapping_file;                // YAML; empty: what the method knows by itself
  std::shared_ptr<const Mapping> mapping;  // what load_mapping() made of it
};

/// Reads the mapping file and the built-in table, so that what is wrong with it is told before any work.
/// IoError, FormatError.
void load_mapping(MatchOptions& options);

/// Pairs every row of the target, by a mapping that load_mapping() read. With Method::layer construct.json
/// and stack.json are read beside both dumps.
Matching match(const Side& target, const Side& golden, const MatchOptions& options,
               const PairingTraits& traits, const Rules& rules);

}  // namespace msprobe::compare
