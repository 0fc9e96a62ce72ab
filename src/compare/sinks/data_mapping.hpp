// SPDX-License-Identifier: Apache-2.0
// Data mappings that -dm reads: what -lm paired, and for --suggest-mapping a proposal which rows without
// partner could belong together.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compare/imports.hpp"
#include "compare/sinks/sink.hpp"
#include "support/output_file.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

/// Row names of the target and of the golden side.
using NamePairs = std::vector<std::pair<std::string, std::string>>;

/// The pairs whose names differ, and proposals for entries that no row of has a partner: entries of the same
/// direction whose rows have the same suffixes, shapes and kinds of dtype, in order of execution; those with
/// alike names first. As a data mapping it pairs all that is paired now, and the proposals. n log n in the
/// number of entries.
NamePairs suggest_pairs(const RankResult& result);

/// Writes the pairs of all ranks as one data mapping, of a name that comes again the first. False, and no
/// file, if there are none.
bool write_suggestion(const std::vector<NamePairs>& ranks, const std::string& path, Existing existing);

/// Does so for all tasks, and warns if there is nothing to propose.
std::unique_ptr<Sink> mapping_proposal_sink(const std::string& path, Existing existing);

/// `data_mapping_*.yaml` beside the result of each task: the golden row's name for each row, N/A where there
/// is none.
std::unique_ptr<Sink> data_mapping_sink(const std::string& directory, const std::string& time);

}  // namespace msprobe::compare
