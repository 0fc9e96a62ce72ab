// SPDX-License-Identifier: Apache-2.0
// The ways of pairing that the command line offers (docs/pairing.md).
#pragma once

#include <memory>
#include <string>

#include "dump/construct_json.hpp"
#include "pairing/matching.hpp"

namespace msprobe::pairing {

enum class Method {
  exact,  // by row name; call numbers of backward entries count by order of appearance (recomputation)
  api,    // operations of MindSpore by their names in PyTorch
  cell,   // modules by a table of names
  data,   // rows by a table of names
  layer,  // by the place of an operation in the model
};

/// A mapping file, read and checked.
struct Mapping;

struct MatchOptions {
  Method method = Method::exact;
  bool fuzzy = false;                           // call numbers do not matter, the order of execution does
  bool by_name = false;                         // by name even where the two sides have different entries
  std::string mapping_file = {};                // YAML; empty: the method's built-in table
  std::shared_ptr<const Mapping> mapping = {};  // what load_mapping() made of it
};

/// Reads the mapping file and the built-in table, so that errors in it are reported before any work.
/// IoError, FormatError.
void load_mapping(MatchOptions& options);

/// The modules that enclose the entries of both sides; null if they are not known.
struct Constructs {
  const dump::ConstructBeside* target = nullptr;
  const dump::ConstructBeside* golden = nullptr;
};

/// Whether both sides hold forward entries of the same names in the same order. Then names pair them.
bool same_calls(const Side& target, const Side& golden);

/// Pairs every row of the target, by a mapping that load_mapping() read. Without a mapping, it pairs rows by
/// name if both sides hold the same entries, and else aligns them. Method::layer always uses both files,
/// construct.json and stack.json.
Matching match(const Side& target, const Side& golden, const MatchOptions& options, const Rules& rules,
               const Constructs& constructs = {});

}  // namespace msprobe::pairing
