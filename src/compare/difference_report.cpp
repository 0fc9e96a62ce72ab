// SPDX-License-Identifier: Apache-2.0
#include "compare/first_difference.hpp"

#include <fmt/format.h>

#include <string_view>

#include "compare/analysis/rank_json.hpp"
#include "report/terminal.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr std::size_t kMostPlaces = 8;  // shown with their details

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
  JsonWriter json({.indent = kDifferenceIndent});
  json.open_object();
  for (std::size_t i = 0; i < step.first.places.size(); ++i) {
    const FirstDifference::Place& place = step.first.places[i];
    if (i == 0 || place.rank != step.first.places[i - 1].rank) {
      if (i != 0) json.close();
      json.key(fmt::format("rank_{}", step.ranks[step.searched[place.rank]].differences.number));
      json.open_list();
    }
    json.raw(place.entry->info);
  }
  while (json.depth() > 0) json.close();
  return json.take();
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
