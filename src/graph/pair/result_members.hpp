// SPDX-License-Identifier: Apache-2.0
// What a comparison adds to the item of a node under test (docs/formats.md, "Item texts").
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "graph/data/item_texts.hpp"
#include "verdict/result.hpp"

namespace msprobe::graph {

// Of statistics and of tensors, in their order; the tool tips are by the same names.
inline constexpr std::array<std::string_view, dump::kStatistics> kDifferenceKeys = {
    "Max diff", "Min diff", "Mean diff", "L2norm diff"};
inline constexpr std::array<std::string_view, dump::kStatistics> kRelativeKeys = {
    "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"};
inline constexpr std::array<std::string_view, measuring::kMetrics> kMetricKeys = {
    "Cosine",
    "EucDist",
    "MaxAbsErr",
    "MaxRelativeErr",
    "One Thousandth Err Ratio",
    "Five Thousandths Err Ratio"};

/// `python_texts`: a row without partner has blanks for numbers, and infinite differences end with a TAB.
TextMembers result_members(const verdict::RankResult& result, std::size_t row, bool python_texts);

/// What a metric says, or why there is none.
std::string metric_text(const measuring::TensorMetrics& metrics, std::size_t metric);

}  // namespace msprobe::graph
