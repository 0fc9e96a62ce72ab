// SPDX-License-Identifier: Apache-2.0
// The report of a monitored training as one HTML file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "monitor/analyze/alert_file.hpp"
#include "monitor/report/gather.hpp"
#include "report/page.hpp"

namespace msprobe::monitor {

/// What the page says first: one sentence, what follows from it, and how bad it is (pass, warning, error).
struct Headline {
  std::string text;
  std::string more;
  std::string grade;
  bool is_trouble = false;  // the training blows up, or the two part, if only for some steps
};

/// The gate counts these.
inline constexpr std::string_view kCells = "cells";

Headline headline_of(const ReportData& data, bool several_ranks);

/// `alerts`: of each run. The same bytes for the same data.
void write_report(const ReportOptions& options, const ReportData& data,
                  const std::vector<std::vector<Alert>>& alerts, const report::PageSink& sink);

}  // namespace msprobe::monitor
