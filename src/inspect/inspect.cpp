// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include "checkpoint/checkpoint.hpp"
#include "inspect/facts.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

/// A folder may be a dump or a checkpoint; only a folder without any dump is read as a checkpoint. Other
/// folders may still be rated.
void inspect_folder(const std::string& path, const Options& options, PathFacts& facts) {
  try {
    inspect_tree(path, facts);
  } catch (const FormatError&) {
    const bool is_checkpoint = checkpoint::looks_like_checkpoint(path);
    if (!is_checkpoint && !options.rate) throw;
    try {
      if (is_checkpoint) inspect_checkpoint(path, facts);
    } catch (const FormatError& error) {
      if (!options.rate) throw;
      facts.warnings.push_back(without_path(error.what(), path));
    }
  }
  if (options.rate) rate_folder(path, facts);
}

/// A dump, or another file that may still be rated.
void inspect_json(const std::string& path, const Options& options, PathFacts& facts) {
  try {
    inspect_tree(path, facts);
  } catch (const FormatError&) {
    if (!options.rate) throw;
  }
  if (options.rate) inspect_file(path, options, facts);
}

/// Only JSON begins so; no tensor file does.
bool begins_like_json(const std::string& path) {
  return first_bytes(*open_file(path), 1) == "{";
}

}  // namespace

std::string without_path(const std::string& message, const std::string& path) {
  const std::string prefix = display(path) + ": ";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

bool PathFacts::failed() const {
  if (!problems.empty()) return true;
  if (file &&
      std::ranges::any_of(file->tensors, [](const TensorFacts& tensor) { return !tensor.problem.empty(); })) {
    return true;
  }
  if (checkpoint && checkpoint->unreadable_count > 0) return true;
  if (rated && rated->unfinished > 0) return true;
  if (!tree) return false;
  return std::ranges::any_of(tree->steps, [](const StepFacts& step) {
    return std::ranges::any_of(step.ranks, [](const RankFacts& rank) { return !rank.problem.empty(); });
  });
}

PathFacts inspect_path(const std::string& path, const Options& options) {
  PathFacts facts;
  facts.path = path;
  try {
    if (is_folder(path)) {
      inspect_folder(path, options, facts);
    } else if (begins_like_json(path)) {
      inspect_json(path, options, facts);
    } else {
      inspect_file(path, options, facts);
    }
  } catch (const Error& error) {
    facts.problems.push_back(without_path(error.what(), path));
  } catch (const std::bad_alloc&) {
    facts.problems.emplace_back("not enough memory");
  }
  return facts;
}

}  // namespace msprobe::inspect
