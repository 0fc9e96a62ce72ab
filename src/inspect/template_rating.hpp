// SPDX-License-Identifier: Apache-2.0
// Rates a text that a program may use as a template of Jinja.
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

/// Nothing for a text that only makes text from its inputs. Such a template reaches only attributes and items
/// whose names do not begin with an underscore and are not computed by the template. It calls only its own
/// macros, functions that chat templates get, and methods of texts, lists and dicts. `prose`: braces in the
/// text are seldom a template, so text that Jinja refuses passes.
std::optional<TemplateFinding> rate_template(std::string_view text, bool prose = false);

}  // namespace msprobe::inspect
