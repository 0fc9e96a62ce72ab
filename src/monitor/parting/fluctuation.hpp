// SPDX-License-Identifier: Apache-2.0
// How much a series of numbers fluctuates by itself, told from its earlier steps.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace msprobe::monitor {

/// The upper one of the middle numbers, of at least one; reorders them.
double median(std::vector<double>& values);

/// The size of what deviates from the middle: 1.4826 times the median of the absolute deviations, but no less
/// than what their 95th percentile and the largest of them stand for, so that rare large steps of a healthy
/// run count. All three are the standard deviation where 64 numbers scatter normally. What is not finite is
/// left out; 0 for fewer than two numbers.
double scatter(std::vector<double>& values);

/// The scatter of the changes from one number to the next.
double scatter_of_changes(std::span<const double> values);

/// The size of the changes from one number to the next, by the same measure.
double size_of_changes(std::span<const double> values);

/// How far a series goes within `values`: at each distance the median way there (scaled as above), yet no
/// more than a walk of random steps would go; the largest of them. Constant for noise, growing for what
/// drifts.
double reach(std::span<const double> values);

}  // namespace msprobe::monitor
