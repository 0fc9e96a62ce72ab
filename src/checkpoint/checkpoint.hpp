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

/// Another copy of a parameter inside the checkpoint, which must be equal to it.
struct Replica {
  Parameter parameter;
  std::string where;                  // "tensor-parallel rank 1"
  std::optional<Parameter> original;  // the part that it copies, if not the whole
};

struct CheckpointEntry {
  Parameter parameter;
  std::vector<Replica> replicas;
  /// The slices of all tensor-parallel ranks, if the name does not say whether they are copies.
  std::vector<Parameter> slices;
  std::string problem;  // why it cannot be compared; empty: it can
  /// Several names for one tensor share a number other than 0.
  std::size_t tied = 0;
};

/// The properties of a model that a name map needs.
struct Architecture {
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> query_groups;
  std::optional<std::int64_t> head_size;
  std::optional<std::int64_t> vocabulary;  // tokens
};

struct Checkpoint {
  std::string path;
  std::string format;                    // for people: "Megatron, 2 tensor x 2 pipeline ranks"
  bool megatron_names = false;           // names are Megatron's, mapped to today's
  std::vector<CheckpointEntry> entries;  // no name twice
  Architecture architecture;
  std::vector<std::string> warnings;
  std::vector<std::string> left_out;  // weights in the same place that are not compared, a line each
};

struct CheckpointLoadOptions {
  bool optimizer = false;      // optimizer, scheduler and random state too
  bool allow_partial = false;  // go on where rank files are missing or broken
};

/// Detects the format from the contents, never from the name alone. Throws an Error with the path if there is
/// no checkpoint, or if the checkpoint is broken or incomplete as a whole. If one parameter is wrong, the
/// `problem` of its entry says why.
Checkpoint load(const std::string& path, const CheckpointLoadOptions& options);

/// True if the path seems to hold a checkpoint. Takes a quick look only, and never throws.
bool looks_like_checkpoint(const std::string& path) noexcept;

}  // namespace msprobe::checkpoint
