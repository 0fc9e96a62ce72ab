// SPDX-License-Identifier: Apache-2.0
// The rating of a text that a program may take for a template of Jinja.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/pickle_rating.hpp"

namespace msprobe::inspect {

struct TemplateFinding {
  formats::Rating rating = formats::Rating::unknown;
  std::string what;  // "a template that calls x.open()"
};

/// Nothing for a text that makes text of what it is given and does nothing else. Such a template reaches
/// attributes and items whose names do not begin with an underscore and are no work of its own, and calls its
/// own macros, functions that chat templates are given, and methods of texts, lists and dicts. `prose`:
/// braces in it are mostly no template, so that what Jinja refuses passes.
std::optional<TemplateFinding> rate_template(std::string_view text, bool prose = false);

}  // namespace msprobe::inspect
