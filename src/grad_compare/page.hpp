// SPDX-License-Identifier: Apache-2.0
// similarities.html: the course of the similarity over the steps, and where in the model it is lost. No
// script, nothing from elsewhere.
#pragma once

#include <string>

#include "grad_compare/similarity.hpp"

namespace msprobe::grad_compare {

/// The whole page. Its size is bounded: steps are put together by their least similarity where there are more
/// than fit, and of the parameters those that agree least are drawn; the page says so.
std::string render_page(const Similarity& similarity, const std::string& first, const std::string& second);

}  // namespace msprobe::grad_compare
