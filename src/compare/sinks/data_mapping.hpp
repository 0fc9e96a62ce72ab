// SPDX-License-Identifier: Apache-2.0
// Data mappings that -dm reads: the pairs that -lm made, and for --suggest-mapping a proposal of rows without
// a partner that could belong together.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compare/sinks/sink.hpp"
#include "support/output_file.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

/// Row names of the target and of the golden side.
using NamePairs = std::vector<std::pair<std::string, std::string>>;

/// Returns the pairs whose names differ, and proposals for entries without any paired row: entries of the
/// same direction whose rows have the same suffixes, shapes and kinds of dtype, in order of execution;
/// entries with similar names come first. As a data mapping it pairs all that is paired now, and the
/// proposals. Takes n log n time in the number of entries.
NamePairs suggest_pairs(const verdict::RankResult& result);

/// Writes the pairs of all ranks as one data mapping; if a name occurs again, the first pair counts. Without
/// pairs it writes no file and returns false.
bool write_suggestion(const std::vector<NamePairs>& ranks, const std::string& path, Existing existing);

/// Writes the proposals of all tasks, and warns if there is nothing to propose.
std::unique_ptr<Sink> mapping_proposal_sink(const std::string& path, Existing existing);

/// Writes `data_mapping_*.yaml` beside the result of each task: the golden row's name for each row, or N/A.
std::unique_ptr<Sink> data_mapping_sink(const std::string& directory, const std::string& time);

/// Writes which parameter of the target is which of golden, by content, for all tasks into one file; each
/// line appears once.
std::unique_ptr<Sink> parameter_mapping_sink(const std::string& path, Existing existing);

}  // namespace msprobe::compare
