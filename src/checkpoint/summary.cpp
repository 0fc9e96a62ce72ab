// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "checkpoint/compare.hpp"
#include "report/terminal.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::size_t kWorst = 10;
constexpr std::size_t kNames = 5;

report::Severity severity_shown(Status status) {
  if (status == Status::different || status == Status::shapes_differ || status == Status::unreadable) {
    return report::Severity::error;
  }
  return status == Status::close ? report::Severity::warning : report::Severity::none;
}

/// How bad, for the order of the worst: what cannot be compared first.
double badness(const ParameterResult& result) {
  if (!result.compared) return std::numeric_limits<double>::infinity();
  return std::isnan(result.metrics.relative_l2) ? std::numeric_limits<double>::infinity()
                                                : result.metrics.relative_l2;
}

/// The cells behind status and name.
std::vector<std::string> measure_cells(const ParameterResult& result) {
  if (result.status == Status::unreadable) return {"see the note", "", ""};
  if (result.status == Status::shapes_differ) {
    return {fmt::format("{} against {}", result.first_shape ? shape_text(*result.first_shape) : "?",
                        result.second_shape ? shape_text(*result.second_shape) : "?"),
            "", ""};
  }
  std::int64_t numel = 1;
  for (const std::int64_t length : *result.first_shape) numel *= length;
  return {fmt::format("relative {:.3g}", result.metrics.relative_l2),
          fmt::format("largest {:.4g}", result.metrics.max_abs),
          fmt::format("{} of {}", human_count(result.metrics.unequal),
                      human_count(static_cast<std::uint64_t>(numel)))};
}

std::string counts(const CompareReport& report, bool color) {
  const auto count = [&](Status status) { return report.count(status); };
  const std::size_t pairs = report.results.size() - count(Status::only_first) - count(Status::only_second);
  std::string line = fmt::format("{} parameters in both: {} equal bit for bit", human_count(pairs),
                                 human_count(count(Status::equal)));
  const auto part = [&](Status status, const char* what) {
    const std::size_t n = count(status);
    if (n == 0) return;
    line +=
        ", " + report::paint(human_count(n) + " " + what, report::color_of(severity_shown(status)), color);
  };
  part(Status::same_values, "of equal values");
  part(Status::close, "close");
  part(Status::different, "different");
  part(Status::shapes_differ, "of different shapes");
  part(Status::unreadable, "not comparable");
  return line;
}

std::string names_of(const CompareReport& report, Status status) {
  std::string line;
  std::size_t shown = 0;
  const std::size_t all = report.count(status);
  for (const ParameterResult& result : report.results) {
    if (result.status != status) continue;
    if (shown++ == kNames) break;
    line += (line.empty() ? "" : ", ") + display(result.name);
  }
  if (all > kNames) line += fmt::format(" and {} more", human_count(all - kNames));
  return line;
}

std::string worst(const CompareReport& report, bool color) {
  std::vector<const ParameterResult*> bad;
  for (const ParameterResult& result : report.results) {
    const bool one_sided = result.status == Status::only_first || result.status == Status::only_second;
    if (!one_sided && result.status != Status::equal && result.status != Status::same_values)
      bad.push_back(&result);
  }
  if (bad.empty()) return "";
  std::stable_sort(bad.begin(), bad.end(), [](const ParameterResult* a, const ParameterResult* b) {
    if (severity_shown(a->status) != severity_shown(b->status))
      return severity_shown(a->status) > severity_shown(b->status);
    return badness(*a) > badness(*b);
  });
  bad.resize(std::min(bad.size(), kWorst));
  report::TerminalStyle style;
  style.width = report::terminal_width(STDERR_FILENO);
  style.color = color;
  style.indent = 4;
  std::vector<std::vector<std::string>> lines;
  for (const ParameterResult* result : bad) {
    std::vector<std::string>& line = lines.emplace_back();
    line = {std::string(status_name(result->status)), result->name};
    for (std::string& cell : measure_cells(*result)) line.push_back(std::move(cell));
    style.severities.push_back(severity_shown(result->status));
  }
  return fmt::format("  worst {}:\n", bad.size()) + report::render_columns({}, lines, style);
}

}  // namespace

std::string render_summary(const CompareReport& report, bool color) {
  std::string out = fmt::format("{} ({}) against {} ({})\n", display(report.first.path), report.first.format,
                                display(report.second.path), report.second.format);
  for (const std::string& remark : report.remarks) out += "  " + remark + "\n";
  out += "  " + counts(report, color) + "\n";
  out += worst(report, color);
  std::size_t notes = 0;
  for (const ParameterResult& result : report.results) {
    if (result.note.empty()) continue;
    if (++notes > kWorst) continue;
    out += "  " + report::paint("note: ", report::Color::yellow, color) + display(result.name) + ": " +
           result.note + "\n";
  }
  if (notes > kWorst) out += fmt::format("  and {} more notes, all of them with --details\n", notes - kWorst);
  for (const Status status : {Status::only_first, Status::only_second}) {
    if (report.count(status) == 0) continue;
    const std::string label = fmt::format("{} {}: ", human_count(report.count(status)), status_name(status));
    out += "  " + report::paint(label, report::Color::yellow, color) + names_of(report, status) + "\n";
  }
  for (const std::string& file : report.files) out += "  written: " + display(file) + "\n";
  return out;
}

}  // namespace msprobe::checkpoint
