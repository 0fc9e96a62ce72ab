// SPDX-License-Identifier: Apache-2.0
// Words and numbers as the Python tool's files have them.
#pragma once

#include <string>
#include <string_view>

#include "precheck/judgement/output.hpp"

namespace msprobe::precheck {

/// The column of a figure, as the Python tool calls it, and in English.
std::string_view column_of(Figure figure);
std::string_view english_column_of(Figure figure);

/// A blank without a figure; a float of NumPy as it prints, other numbers with 14 decimals.
std::string spelled_figure(const FigureValue& figure);

/// `pass`, `warning` (release 8: `Warning`), `error`, `SKIP`, or a blank.
std::string_view status_word(Status status, Selection selection);
/// Ours: `pass`, `warning`, `error`, `skip`, or nothing.
std::string_view verdict_word(Verdict verdict);

}  // namespace msprobe::precheck
