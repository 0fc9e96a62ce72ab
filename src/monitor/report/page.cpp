// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/page.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <set>

#include "monitor/compare/words.hpp"
#include "monitor/report/page_parts.hpp"
#include "support/json_writer.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"
#include "support/version.hpp"

namespace msprobe::monitor {
namespace {

constexpr std::size_t kMostAlerts = 20'000;  // in the page, of each run

void append_double(std::string& out, double value) {
  append_le(out, std::bit_cast<std::uint64_t>(value));
}

bool has_several_ranks(const ReportData& data) {
  std::set<std::int64_t> ranks;
  for (const QuantityRows& block : data.blocks) ranks.insert(block.rank);
  return ranks.size() > 1;
}

std::string outbreak_sentence(const RunOutbreak& found, std::string_view who, bool several_ranks) {
  const std::string where =
      display(found.place) + (several_ranks ? fmt::format(" on rank {}", found.rank) : std::string());
  if (found.outbreak.kind == Outbreak::OutbreakKind::number) {
    return fmt::format("{} has its first NaN or infinity at step {}: {} of {} is {}.", who, found.moment.step,
                       display(found.statistic), where, short_number(found.outbreak.value, 6));
  }
  return fmt::format("{} blows up from step {} on: {} of {} is {}, {} times its usual size.", who,
                     found.moment.step, display(found.statistic), where,
                     short_number(found.outbreak.value, 4),
                     short_number(std::fabs(found.outbreak.value) / found.outbreak.usual, 3));
}

/// The quantity of a file that the task in a tag means.
std::string_view quantity_of_task(std::string_view task) {
  if (task == "post_grad") return "grad_reduced";
  if (task == "pre_grad" || task == "acc_grad") return "grad_unreduced";
  return task;
}

void write_marks(JsonWriter& json, const QuantityRows& block) {
  json.open_list("marks");
  for (const RowMark& mark : block.marks) {
    json.list(mark.row, mark.statistic, mark.step, mark.kind, mark.run);
  }
  json.close();
}

void write_block(JsonWriter& json, const QuantityRows& block) {
  json.open_object();
  json.member("rank", block.rank);
  json.member("quantity", block.quantity);
  json.member("names", block.names);
  json.member("stages", block.stages);
  json.member("microSteps", block.micro_steps);
  json.member("steps", block.steps);
  json.member("width", block.width);
  json.open_list("statistics");
  for (const PackedStatistic& statistic : block.statistics) json.value(statistic.name);
  json.close();
  write_marks(json, block);
  json.close();
}

/// An alert whose row is missing on the page is still listed; it only has no place on the map.
void write_alerts(JsonWriter& json, const std::vector<Alert>& alerts) {
  json.open_list();
  for (std::size_t i = 0; i < std::min(alerts.size(), kMostAlerts); ++i) {
    json.list(alerts[i].rank, alerts[i].step, quantity_of_task(alerts[i].task()),
              alerts[i].tag.substr(0, alerts[i].tag.find('/')), alerts[i].message);
  }
  json.close();
}

std::string overview(const ReportOptions& options, const ReportData& data,
                     const std::vector<std::vector<Alert>>& alerts) {
  const Headline headline = headline_of(data, has_several_ranks(data));
  JsonWriter json({.compact = true, .text = JsonText::utf8});
  json.open_object();
  json.member("version", kVersion);
  json.member("headline", std::vector<std::string>{headline.text, headline.more, headline.grade});
  std::vector<std::string> runs = {options.first};
  if (!options.second.empty()) runs.push_back(options.second);
  json.member("runs", runs);
  json.member("series", data.series);
  json.open_list("outbreaks");
  for (const std::optional<RunOutbreak>& one : data.outbreaks) {
    json.value(
        one ? outbreak_sentence(*one, data.outbreaks.size() == 1 ? "It" : "This run", has_several_ranks(data))
            : "");
  }
  json.close();
  std::vector<std::string> notes = data.notes;
  for (std::size_t run = 0; run < alerts.size(); ++run) {
    if (alerts[run].size() > kMostAlerts)
      notes.push_back(
          fmt::format("{} alerts of run {} are left out", alerts[run].size() - kMostAlerts, run + 1));
  }
  if (data.comparison) {
    for (const std::string& text : not_compared(*data.comparison)) notes.push_back("not compared: " + text);
    if (data.comparison->parted > 0) json.member("partsAt", data.comparison->series.front().moment.step);
  }
  for (const std::string& problem : data.problems) notes.push_back(problem);
  json.member("notes", notes);
  json.open_list("blocks");
  for (const QuantityRows& block : data.blocks) write_block(json, block);
  json.close();
  json.open_list("curves");
  for (const Curve& curve : data.curves) {
    json.open_object();
    json.member("name", curve.name);
    json.member("rank", curve.rank);
    json.member("steps", curve.steps);
    json.close();
  }
  json.close();
  json.open_list("alerts");
  for (const std::vector<Alert>& one : alerts) write_alerts(json, one);
  json.close();
  json.close();
  return json.take();
}

/// Four doubles per row: unit, from, quantum, fluctuation.
std::string scales_bytes(const PackedStatistic& statistic) {
  std::string bytes;
  for (const CellScale& scale : statistic.scales) {
    for (const double value : {scale.unit, scale.from, scale.quantum, scale.fluctuation})
      append_double(bytes, value);
  }
  return bytes;
}

/// For each run its numbers, then for each step 1 if the run has a number, else 0.
std::string curve_bytes(const Curve& curve) {
  std::string bytes;
  for (const Curve::CurveRun& run : curve.runs) {
    for (const double value : run.values) append_double(bytes, value);
    for (const bool there : run.there) append_double(bytes, there ? 1 : 0);
  }
  return bytes;
}

}  // namespace

Headline headline_of(const ReportData& data, bool several_ranks) {
  if (data.comparison) {
    const MonitorComparison& comparison = *data.comparison;
    const bool doubtful =
        comparison.passing > 0 || !comparison.coverage.is_complete() || comparison.not_finite > 0;
    return {headline(comparison), cause(comparison),
            comparison.parted > 0 ? "error"
            : doubtful            ? "warning"
                                  : "pass",
            comparison.parted + comparison.passing > 0};
  }
  if (data.outbreaks[0])
    return {outbreak_sentence(*data.outbreaks[0], "The training", several_ranks), "", "error", true};
  if (data.coverage.compared == 0)
    return {fmt::format("Nothing can be judged: {}.", data.coverage.text(kCells)), "", "warning"};
  if (!data.coverage.is_complete())
    return {fmt::format("No series blows up or becomes NaN or infinite in the {} that could be judged: {}.",
                        data.coverage.percent(), data.coverage.text(kCells)),
            "", "warning"};
  return {"No series blows up or becomes NaN or infinite.", "", "pass"};
}

void write_report(const ReportOptions& options, const ReportData& data,
                  const std::vector<std::vector<Alert>>& alerts, const report::PageSink& sink) {
  const auto write_data = [&] {
    report::write_page_data("overview", report::deflate_all(overview(options, data, alerts)), sink);
    for (std::size_t i = 0; i < data.curves.size(); ++i) {
      report::write_page_data(fmt::format("curve-{}", i), report::deflate_all(curve_bytes(data.curves[i])),
                              sink);
    }
    for (std::size_t i = 0; i < data.blocks.size(); ++i) {
      for (std::size_t k = 0; k < data.blocks[i].statistics.size(); ++k) {
        const PackedStatistic& statistic = data.blocks[i].statistics[k];
        report::write_page_data(fmt::format("scales-{}-{}", i, k),
                                report::deflate_all(scales_bytes(statistic)), sink);
        for (std::size_t run = 0; run < statistic.cells.size(); ++run)
          report::write_page_data(fmt::format("cells-{}-{}-{}", i, k, run), statistic.cells[run], sink);
      }
    }
  };
  const Headline headline = headline_of(data, has_several_ranks(data));
  report::write_page({kPage, kStyles, kScripts, headline.text + "\n" + headline.more}, write_data, sink);
}

}  // namespace msprobe::monitor
