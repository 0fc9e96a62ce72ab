// SPDX-License-Identifier: Apache-2.0
// --map-parameters: which parameter of the target is which of golden, by content.
#pragma once

#include <memory>
#include <string>

#include "compare/sinks/sink.hpp"
#include "support/output_file.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

/// The lines of a data mapping, and comments for parameters that it cannot pair.
std::string parameter_mapping(const verdict::RankResult& result);

/// Writes the mappings of all tasks into one file; each line appears once.
std::unique_ptr<Sink> parameter_mapping_sink(const std::string& path, Existing existing);

}  // namespace msprobe::compare
