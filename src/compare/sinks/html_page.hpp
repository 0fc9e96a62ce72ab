// SPDX-License-Identifier: Apache-2.0
// The whole comparison as one HTML file that needs nothing else: it opens from a mail, makes no network
// requests, and shows every name as text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/sinks/report_data.hpp"
#include "compare/sinks/sink.hpp"
#include "support/output_file.hpp"

namespace msprobe::compare {

/// Writes the report to `sink`, with the same bytes for the same results. `ranks` are the tasks of `report`,
/// in its order; a task that could not be compared is empty.
void write_html(const CompareReport& report, const std::vector<PackedRank>& ranks,
                const std::function<void(std::string_view)>& sink);

/// Builds the page from the rows of all tasks as they come. Creates the folder of `path`; "-" is standard
/// output. `progress` may be null. If there are more than `room` rows in all, each task keeps its share, with
/// the rows around differences (row_sample.hpp), and the page says so.
inline constexpr std::size_t kRowsOnPage = 1'000'000;
std::unique_ptr<Sink> html_sink(const std::string& path, Existing existing, Progress* progress,
                                std::size_t room = kRowsOnPage);

}  // namespace msprobe::compare
