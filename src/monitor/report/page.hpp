// SPDX-License-Identifier: Apache-2.0
// Writes the report of a monitored training as one HTML file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "monitor/analyze/alert_file.hpp"
#include "monitor/report/gather.hpp"
#include "report/page.hpp"

namespace msprobe::monitor {

/// The first words of the page: one sentence, its consequences, and its grade (pass, warning, error).
struct Headline {
  std::string text;
  std::string more;
  std::string grade;
  bool is_trouble = false;  // the training blows up, or the two runs part, if only for some steps
};

/// The unit that the gate counts.
inline constexpr std::string_view kCells = "cells";

Headline headline_of(const ReportData& data, bool several_ranks);

/// `alerts`: of each run. The same data give the same bytes.
void write_report(const ReportOptions& options, const ReportData& data,
                  const std::vector<std::vector<Alert>>& alerts, const report::PageSink& sink);

}  // namespace msprobe::monitor
