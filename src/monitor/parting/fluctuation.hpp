// SPDX-License-Identifier: Apache-2.0
// Estimates the fluctuation of a series of numbers from its earlier steps.
#pragma once

#include <span>
#include <vector>

namespace msprobe::monitor {

/// The upper one of the middle numbers, of at least one; reorders them.
double median(std::vector<double>& values);

/// The spread around the median: 1.4826 times the median of the absolute deviations, but at least the spread
/// that their 95th percentile and their largest one suggest, so that rare large steps of a healthy run count.
/// For 64 normally distributed numbers all three equal the standard deviation. Numbers that are not finite
/// are ignored; 0 for fewer than two numbers.
double scatter(std::vector<double>& values);

/// The scatter of the changes from one number to the next.
double scatter_of_changes(std::span<const double> values);

/// The size of the changes from one number to the next, by the same measure.
double size_of_changes(std::span<const double> values);

/// How far a series moves within `values`: for each distance in steps, the median change over that distance
/// (scaled as above), but at most the change of a random walk; the largest of these. It is constant for noise
/// and grows for a drift.
double reach(std::span<const double> values);

}  // namespace msprobe::monitor
