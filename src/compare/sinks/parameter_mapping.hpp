// SPDX-License-Identifier: Apache-2.0
// --map-parameters: which parameter of the target is which of golden, by content.
#pragma once

#include <memory>
#include <string>

#include "compare/sinks/sink.hpp"
#include "support/output_file.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

/// Lines of a data mapping, and comments for what it cannot pair.
std::string parameter_mapping(const RankResult& result);

/// Writes that of all tasks into one file: of a name that comes again the first.
std::unique_ptr<Sink> parameter_mapping_sink(const std::string& path, Existing existing);

}  // namespace msprobe::compare
