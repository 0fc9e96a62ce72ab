// SPDX-License-Identifier: Apache-2.0
// A checkpoint of any format and parallel layout, as a list of whole parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/parameter.hpp"
#include "formats/pickle.hpp"

namespace msprobe::checkpoint {

/// Another copy of a parameter inside the checkpoint, which has to be the same.
struct Replica {
  Parameter parameter;
  std::string where;                  // "tensor-parallel rank 1"
  std::optional<Parameter> original;  // what it is a copy of, if not of the whole
};

struct Entry {
  Parameter parameter;
  std::vector<Replica> replicas;
  /// The slices of all tensor-parallel ranks, where the name does not tell whether they are copies.
  std::vector<Parameter> slices;
  std::string problem;  // why it cannot be compared; empty: it can
  /// The same number, not 0: several names for one tensor.
  std::size_t tied = 0;
};

/// What a name map needs to know of a model.
struct Architecture {
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> query_groups;
  std::optional<std::int64_t> head_size;
  std::optional<std::int64_t> vocabulary;  // tokens
};

struct Checkpoint {
  std::string path;
  std::string format;           // for people: "Megatron, 2 tensor x 2 pipeline ranks"
  bool megatron_names = false;  // names are Megatron's, mapped to today's
  std::vector<Entry> entries;   // no name twice
  Architecture architecture;
  std::vector<std::string> warnings;
  std::vector<std::string> left_out;  // weights beside these that are not compared, a line each
};

struct LoadOptions {
  bool optimizer = false;      // optimizer, scheduler and random state too
  bool allow_partial = false;  // go on where rank files are missing or broken
};

/// Looks at what is there, never only at how it is called. Error naming the path if it is no checkpoint, or
/// one that is broken or incomplete as a whole; what is wrong with one parameter stands in its entry.
Checkpoint load(const std::string& path, const LoadOptions& options);

/// Does the path hold a checkpoint, as far as a glance tells? Never throws.
bool looks_like_checkpoint(const std::string& path) noexcept;

}  // namespace msprobe::checkpoint
