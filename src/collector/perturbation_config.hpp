// SPDX-License-Identifier: Apache-2.0
// The section of task free_benchmark: which perturbation, where, and what becomes of the second result. The
// front end, which calls, reads the keys by setting(); here it is told what is wrong with them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace msprobe::collector {

/// FormatError that names `where`, the key and what would be right.
void check_perturbation(const nlohmann::ordered_json& section, const std::string& where);

}  // namespace msprobe::collector
