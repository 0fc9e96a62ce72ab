// SPDX-License-Identifier: Apache-2.0
// Writes words and numbers as the Python tool's files have them.
#pragma once

#include <string>
#include <string_view>

#include "precheck/judgement/output.hpp"

namespace msprobe::precheck {

/// The column of a figure, by the Python tool's name, and in English.
std::string_view column_of(Figure figure);
std::string_view english_column_of(Figure figure);

/// The text of a figure: a blank if it is missing, a float of NumPy as NumPy prints it, other numbers with 14
/// decimals.
std::string spelled_figure(const FigureValue& figure);

/// `pass`, `warning` (release 8: `Warning`), `error`, `SKIP`, or a blank.
std::string_view status_word(PythonStatus status, Selection selection);
/// The word for msprobe's verdict: `pass`, `warning`, `error`, `skip`, or nothing.
std::string_view verdict_word(PrecheckVerdict verdict);

}  // namespace msprobe::precheck
