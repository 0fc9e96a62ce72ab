// SPDX-License-Identifier: Apache-2.0
// What -lm paired, written as a data mapping that -dm reads.
#pragma once

#include <memory>
#include <string>

#include "compare/sinks/sink.hpp"

namespace msprobe::compare {

/// `data_mapping_*.yaml` beside the result of each task: the golden row's name for each row, N/A where there
/// is none.
std::unique_ptr<Sink> data_mapping_sink(const std::string& directory, const std::string& time);

}  // namespace msprobe::compare
