// SPDX-License-Identifier: Apache-2.0
// The files of monitors of two runs, folders of ranks with csv files and alerts, one fact or more of which is
// wrong, through the commands that read them. The choices are the command, the ranks, the steps, and which of
// both monitors' layouts it is.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_checkpoint.hpp"
#include "fuzz_database.hpp"
#include "fuzz_facts.hpp"
#include "fuzz_target.hpp"
#include "monitor/alerts/replay.hpp"
#include "monitor/analyze/alert_file.hpp"
#include "monitor/analyze/analyze.hpp"
#include "monitor/compare/compare.hpp"
#include "monitor/compare/table.hpp"
#include "monitor/compare/words.hpp"
#include "monitor/csv2tb/convert.hpp"
#include "monitor/report/gather.hpp"
#include "monitor/report/page.hpp"
#include "monitor/trend/trend.hpp"
#include "support/error.hpp"

namespace msprobe::monitor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRunChoices = 4;
constexpr std::size_t kRunFacts = 512;

/// A field as csv has it.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

class RunFiles {
 public:
  RunFiles(Facts& facts, std::size_t ranks, std::size_t steps, bool second_layout)
      : facts_(facts), ranks_(ranks), steps_(steps), second_(second_layout) {}

  void write(const std::string& folder) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const std::string name = second_ ? "rank_" + std::to_string(rank)
                                       : "Jan01_00-00-00-rank" + std::to_string(rank) + "-0a1b2c3d";
      write_rank(folder + "/" + in_one_folder(facts_.text(name)));
      write_alerts(folder + "/anomaly_detected/rank" + std::to_string(rank), rank);
    }
  }

 private:
  /// Not empty, not too long, and in no other folder.
  static std::string in_one_folder(std::string name) {
    for (char& c : name) c = c == '/' || c == '\0' ? '_' : c;
    if (name.empty() || name == "." || name == "..") name = "x";
    return name.substr(0, 200);
  }

  void write_rank(const std::string& folder) {
    fs::create_directories(folder);
    for (const char* quantity : {"actv", "grad_reduced", "param_origin"}) {
      const std::string last = std::to_string(facts_.number(static_cast<std::int64_t>(steps_) - 1));
      const std::string name = std::string(quantity) + "_" + (second_ ? "step" : "") + "0-" + last + ".csv";
      put(folder + "/" + in_one_folder(facts_.text(name)), table(quantity));
    }
  }

  std::string table(std::string_view quantity) {
    std::vector<std::vector<std::string>> rows = {{"vpp_stage", "name", "step"}};
    const bool micro = quantity == "actv";
    if (micro) rows[0].push_back("micro_step");
    for (const char* statistic : {"norm", "min", "max", "nans"}) rows[0].push_back(statistic);
    for (std::string& column : rows[0]) column = facts_.text(column);
    for (std::size_t step = 0; step < steps_; ++step) {
      for (std::size_t tensor = 0; tensor < 2; ++tensor) {
        std::vector<std::string>& row = rows.emplace_back();
        row.push_back(facts_.json("0"));
        row.push_back(facts_.text("layers." + std::to_string(tensor) + ".weight"));
        row.push_back(std::to_string(facts_.number(static_cast<std::int64_t>(step))));
        if (micro) row.push_back(facts_.json("0"));
        row.push_back(facts_.json(std::to_string(step + 1) + ".25"));
        row.push_back(facts_.json("-0.5"));
        row.push_back(facts_.json("1e3"));
        row.push_back(facts_.json("0"));
        row.resize(facts_.count(row.size()));
      }
    }
    std::string text;
    for (const auto& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + quoted(row[i]);
      text += '\n';
    }
    return text;
  }

  void write_alerts(const std::string& folder, std::size_t rank) {
    std::vector<Alert> alerts(2);
    for (std::size_t i = 0; i < alerts.size(); ++i) {
      Alert& alert = alerts[i];
      alert.key = facts_.text("key" + std::to_string(i));
      alert.rank = facts_.number(static_cast<std::int64_t>(rank));
      alert.step = facts_.number(static_cast<std::int64_t>(i));
      alert.pp_stage = facts_.number(0);
      alert.call_id = facts_.number(3);
      alert.tag = facts_.text("0:layers.0.weight/rank" + std::to_string(rank) + "/norm");
      alert.message = facts_.text("Rule AnomalyNan reports anomaly signal");
    }
    fs::create_directories(folder);
    put(folder + "/anomaly.json", alerts_json(alerts));
  }

  void put(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << facts_.content(content);
  }

  Facts& facts_;
  std::size_t ranks_;
  std::size_t steps_;
  bool second_;
};

void compare_runs(const std::string& a, const std::string& b, bool right) {
  MonitorCompareOptions options;
  options.first = a;
  options.second = b;
  const MonitorComparison comparison = compare(options, nullptr);
  const ComparisonTable table(comparison);
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    table.row(i, cells, scratch);
    if (cells.size() != table.columns().size()) __builtin_trap();
  }
  if (headline(comparison).empty()) __builtin_trap();
  summary(comparison, false);
  if (right && (comparison.parted > 0 || !not_compared(comparison).empty() || !comparison.problems.empty()))
    __builtin_trap();
}

void run_command(std::size_t command, const std::string& a, const std::string& b, const std::string& out,
                 bool right) {
  switch (command) {
    case 0:
      return compare_runs(a, b, right);
    case 1: {
      MonitorAnalyzeOptions options;
      options.input = a;
      const AlertRanking ranking = rank_alerts_in(options);
      if (right && (ranking.all == 0 || !ranking.problems.empty())) __builtin_trap();
      return;
    }
    case 2: {
      ReplayOptions options;
      options.input = a;
      options.rules = parse_rules({"AnomalyTurbulence:0.5", "AnomalyNan"});
      options.output = out;
      const Replay replay = replay_alerts(options, nullptr);
      if (right && (replay.values == 0 || !replay.problems.empty())) __builtin_trap();
      return;
    }
    case 3: {
      EventOptions options;
      options.input = a;
      options.output = out;
      const EventReport report = convert_to_events(options, nullptr);
      if (right && (report.scalars == 0 || !report.problems.empty())) __builtin_trap();
      return;
    }
    case 4: {
      TrendOptions options;
      options.input = a;
      options.output = out;
      const TrendReport report = trend_of_monitor(options, nullptr);
      if (!report.file.empty()) const WrittenDatabase sound(report.file);
      if (right && (report.rows == 0 || !report.problems.empty())) __builtin_trap();
      return;
    }
    default: {
      ReportOptions options;
      options.first = a;
      options.second = b;
      const ReportData data = gather(options, nullptr);
      std::string page;
      write_report(options, data, {}, [&](std::string_view text) { page += text; });
      if (right && (data.series == 0 || !data.problems.empty())) __builtin_trap();
    }
  }
}

}  // namespace

FUZZ_TARGET(monitor_tree)(const std::uint8_t* data, std::size_t size) {
  static const FuzzFolder place;
  Facts facts(data, size, kRunChoices, kRunFacts);
  const std::size_t command = facts.choose(6);
  const std::size_t ranks = 1 + facts.choose(2);
  const std::size_t steps = 1 + facts.choose(4);
  RunFiles files(facts, ranks, steps, facts.choose(2) == 1);
  const std::string a = place.path() + "/a";
  const std::string b = place.path() + "/b";
  const std::string out = place.path() + "/out";
  files.write(a);
  files.write(b);
  try {
    run_command(command, a, b, out, facts.all_right());
  } catch (const FormatError&) {
    if (facts.all_right()) throw;
  } catch (const IoError&) {
    if (facts.all_right()) throw;
  }
  for (const std::string& folder : {a, b, out}) fs::remove_all(folder);
}

}  // namespace msprobe::monitor
