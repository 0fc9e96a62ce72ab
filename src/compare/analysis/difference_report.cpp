// SPDX-License-Identifier: Apache-2.0
#include "compare/analysis/difference_report.hpp"

#include <fmt/format.h>

#include <string_view>

#include "report/terminal.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr std::size_t kMostPlaces = 8;  // shown with their details
constexpr int kIndent = 2;              // of diff_analyze_*.json

std::string_view phase_text(Phase phase) {
  switch (phase) {
    case Phase::before:
      return "before any communication";
    case Phase::during:
      return "between calls of communication";
    case Phase::after:
      return "after the last communication";
    case Phase::none:
      break;
  }
  return {};
}

std::string rank_name(const RankDifferences& rank) {
  return rank.label.empty() ? "rank " + std::to_string(rank.number) : display(rank.label);
}

void render_place(std::string& out, const AnalyzedStep& step, const FirstDifference::Place& place,
                  bool color) {
  const RankDifferences& rank = step.ranks[step.searched[place.rank]].differences;
  const std::string name = report::paint(display(place.entry->name), report::Color::red, color);
  const std::string where(place.communication ? "in communication itself" : phase_text(step.first.phase));
  out += fmt::format("  first difference: {}: {}, {}\n", rank_name(rank), name, where);
  out += "    " + display(place.entry->what) + "\n";
  if (!place.entry->at.empty()) out += "    at " + display(place.entry->at) + "\n";
}

}  // namespace

std::string difference_json(const AnalyzedStep& step) {
  std::string out = "{";
  std::size_t last = SIZE_MAX;
  for (const FirstDifference::Place& place : step.first.places) {
    if (place.rank == last) {
      out += ',';
    } else {
      if (last != SIZE_MAX) {
        append_json_line(out, 1, kIndent);
        out += "],";
      }
      append_json_line(out, 1, kIndent);
      const std::int64_t number = step.ranks[step.searched[place.rank]].differences.number;
      out += fmt::format("\"rank_{}\": [", number);
    }
    last = place.rank;
    append_json_line(out, 2, kIndent);
    out += place.entry->info;
  }
  if (last != SIZE_MAX) {
    append_json_line(out, 1, kIndent);
    out += ']';
    append_json_line(out, 0, kIndent);
  }
  return out + "}";
}

std::string render_differences(const DifferenceReport& report, bool color) {
  std::string out;
  for (const AnalyzedStep& step : report.steps) {
    std::uint64_t entries = 0;
    std::uint64_t differing = 0;
    std::size_t compared = 0;
    for (const AnalyzedRank& rank : step.ranks) {
      if (!rank.failure.empty()) {
        out += rank_name(rank.differences) + "  " + report::paint("failed: ", report::Color::red, color) +
               rank.failure + "\n";
        continue;
      }
      ++compared;
      entries += rank.differences.entries;
      differing += rank.differences.differing;
    }
    out += fmt::format("{}{} rank{}, {} entries: ", step.label.empty() ? "" : display(step.label) + "  ",
                       human_count(compared), compared == 1 ? "" : "s", human_count(entries));
    const std::string count = human_count(differing) + (differing == 1 ? " differs" : " differ");
    out += (differing == 0 ? count : report::paint(count, report::Color::red, color)) + "\n";
    const std::vector<FirstDifference::Place>& places = step.first.places;
    for (std::size_t i = 0; i < places.size() && i < kMostPlaces; ++i)
      render_place(out, step, places[i], color);
    if (places.size() > kMostPlaces)
      out += fmt::format("  and {} more at the same point\n", human_count(places.size() - kMostPlaces));
    if (places.empty() && differing > 0)
      out += "  what differs is nothing that is named as the first difference (never_first in the rules)\n";
    if (!step.first.doubt.empty())
      out += "  " + report::paint("doubtful: ", report::Color::yellow, color) + step.first.doubt + "\n";
    for (const AnalyzedRank& rank : step.ranks) {
      if (!rank.file.empty()) out += "  written: " + display(rank.file) + "\n";
    }
    if (!step.file.empty()) out += "  written: " + display(step.file) + "\n";
  }
  for (const std::string& line : report.one_sided)
    out += report::paint("not compared: ", report::Color::yellow, color) + display(line) + "\n";
  return out;
}

}  // namespace msprobe::compare
