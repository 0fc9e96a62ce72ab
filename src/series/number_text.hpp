// SPDX-License-Identifier: Apache-2.0
// Fields of the csv files that a training leaves.
#pragma once

#include <string>
#include <string_view>

namespace msprobe::series {

/// Rounded to so many decimals as NumPy does it: times 10^digits, to the nearest even whole number, and back.
/// What would overflow on the way has no decimals.
double round_decimals(double value, int digits);

/// A csv field: in quotes if it holds a comma, a quote or the end of a line.
void append_csv_field(std::string& out, std::string_view text);

}  // namespace msprobe::series
