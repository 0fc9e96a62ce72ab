// SPDX-License-Identifier: Apache-2.0
// The results of a comparison as files.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/compare.hpp"
#include "report/table.hpp"

namespace msprobe::checkpoint {

/// The JSON of the Python tool: l2, cos, numel and shape of every parameter that both have.
std::string similarity_json(const CheckpointReport& report);

/// A table of everything that is known about every parameter. The report must outlive the table.
std::unique_ptr<report::Table> details_table(const CheckpointReport& report);

}  // namespace msprobe::checkpoint
