// SPDX-License-Identifier: Apache-2.0
// similarities.html: the similarity over the steps, and where in the model it is lost. The page has no script
// and loads nothing.
#pragma once

#include <string>

#include "grad_compare/similarity.hpp"

namespace msprobe::grad_compare {

/// The whole page. Its size is bounded: if there are too many steps, neighbours share a column with their
/// least similarity, and only the parameters that agree least are drawn; the page says so.
std::string render_page(const Similarity& similarity, const std::string& first, const std::string& second);

}  // namespace msprobe::grad_compare
