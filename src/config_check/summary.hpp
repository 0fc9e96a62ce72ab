// SPDX-License-Identifier: Apache-2.0
// Renders the results for people on the terminal.
#pragma once

#include <string>

#include "config_check/collect.hpp"
#include "config_check/compare_packs.hpp"
#include "config_check/verl.hpp"

namespace msprobe::config_check {

/// The status of each section, and the most important rows of the sections that did not pass.
std::string render_packs(const PackComparison& comparison, const ComparePacksOptions& options, bool color);
std::string render_verl(const VerlResult& result, bool color);
std::string render_collection(const CollectResult& result);

}  // namespace msprobe::config_check
