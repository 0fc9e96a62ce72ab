// SPDX-License-Identifier: Apache-2.0
// A merged model as a dump of its own: construct.json, dump.json and stack.json
// (docs/rules.md, "A merged model as JSON").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/merge/merged_source.hpp"
#include "support/output_file.hpp"

namespace msprobe::graph {

/// Adds the three files of the folder of a rank, which is made; they have no names yet. Gives the number of
/// nodes. Throws IoError, FormatError.
std::size_t export_json(const MergedSource& source, const std::string& folder,
                        std::vector<OutputFile>& files);

}  // namespace msprobe::graph
