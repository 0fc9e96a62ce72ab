// SPDX-License-Identifier: Apache-2.0
// Writes a merged model as a dump: construct.json, dump.json and stack.json (docs/rules.md, "A merged model
// as JSON").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/merge/merged_source.hpp"
#include "support/output_file.hpp"

namespace msprobe::graph {

/// Creates the folder of a rank and adds its three files, which have no names yet. Returns the number of
/// nodes. Throws IoError, FormatError.
std::size_t export_json(const MergedSource& source, const std::string& folder,
                        std::vector<OutputFile>& files);

}  // namespace msprobe::graph
