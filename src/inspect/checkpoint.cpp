// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.hpp"

#include <limits>

#include "inspect/facts.hpp"
#include "support/text.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::inspect {
namespace {

/// Sizes come from the files; their sum must not begin anew.
void add(std::uint64_t& sum, std::uint64_t value) {
  sum = value > std::numeric_limits<std::uint64_t>::max() - sum ? std::numeric_limits<std::uint64_t>::max()
                                                                : sum + value;
}

}  // namespace

void inspect_checkpoint(const std::string& path, PathFacts& facts) {
  checkpoint::CheckpointLoadOptions options;
  options.allow_partial = true;
  checkpoint::Checkpoint checkpoint = checkpoint::load(path, options);
  CheckpointFacts& found = facts.checkpoint.emplace();
  found.format = checkpoint.format;
  found.warnings = std::move(checkpoint.warnings);
  found.parameters = checkpoint.entries.size();
  for (const checkpoint::CheckpointEntry& entry : checkpoint.entries) {
    if (!entry.problem.empty()) {
      ++found.unreadable_count;
      if (found.unreadable.size() < kMostNames)
        found.unreadable.push_back(display(entry.parameter.name) + ": " + entry.problem);
      continue;
    }
    add(found.elements, static_cast<std::uint64_t>(entry.parameter.numel()));
    add(found.bytes, entry.parameter.bytes());
    ++found.types[std::string(tensor::info(entry.parameter.dtype).name)];
  }
}

}  // namespace msprobe::inspect
