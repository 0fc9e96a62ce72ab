// SPDX-License-Identifier: Apache-2.0
// Describes the result of a comparison of signs in sentences.
#pragma once

#include <string>

#include "grad_compare/similarity.hpp"

namespace msprobe::grad_compare {

/// "rank 0, step 2: 0.667 of all signs are equal, 0.833 one step before; 0.weight agrees least: 0.5"
std::string sentence(const SuspectStep& suspect);

/// One line about the whole comparison.
std::string headline(const Similarity& similarity);

}  // namespace msprobe::grad_compare
