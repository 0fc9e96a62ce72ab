// SPDX-License-Identifier: Apache-2.0
// All facts about one entry, for the terminal (--explain); the report's panel shows the same.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/sinks/sink.hpp"

namespace msprobe::compare {

struct StoryOptions {
  std::string entry;  // or a row; empty: no entry is explained
  std::size_t width = 100;
  bool color = false;
};

/// Everything known about an entry (or about one row, if the name is that of a row): both sides, metrics,
/// messages, the stack with the user's own frames first, the entries before and after. If an entry that only
/// golden has shares its name with one of the target, both are explained. Empty if no entry has that name.
std::string explain(const RankRows& rows, const StoryOptions& options);

struct SimilarName {
  std::size_t distance = 0;
  std::string name;
};

/// The entries with the most similar names, at most `count`, nearest first.
std::vector<SimilarName> similar_entries(const RankRows& rows, std::string_view name, std::size_t count);

/// Puts the stories of all tasks into the report. Throws UsageError, with the most similar names, if no task
/// has the entry and all tasks could be searched.
std::unique_ptr<Sink> story_sink(const StoryOptions& options);

}  // namespace msprobe::compare
