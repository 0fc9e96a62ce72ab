// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "monitor/analyze/analyze.hpp"
#include "monitor/report/page.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

class MonitorReportCommand final : public Command {
 public:
  std::string_view name() const override { return "monitor report"; }
  std::string_view summary() const override {
    return "Show a monitored training, or two of them, as one HTML page";
  }

  void declare(OptionList& options) override {
    options.add("run1=RUN1", options_.first,
                "Folder that the monitor wrote; optionally that of a second run to overlay");
    options.add("run2[=RUN2]", options_.second, "The second run");
    options.add("-o,--output_path=FILE", options_.output, "The page, or - for standard output");
    options.add_overwrite(existing_);
    options.add("--statistics=NAMES", options_.statistics, "Only these: norm, min, max, mean, ...").commas();
    options
        .add("--tolerance=TIMES", options_.tolerance,
             "How many times its own fluctuation a series may differ before it parts")
        .details("See `msprobe-monitor-compare`(1).")
        .not_negative();
    options
        .add("--max-size=MEGABYTES", options_.most_megabytes,
             "Megabytes of numbers; beyond it, steps are shown in groups")
        .details("The page then shows the smallest and the largest number of each group, and says so.")
        .not_negative();
    gate_
        .declare(options, kCells, {"trouble", "never"},
                 "Exit with 1 if the training blows up, or the two part")
        .details(
            "Runs that differ for some steps only also count.\n"
            "Series that are NaN, infinite or empty from the first step on cannot be judged. "
            "They exit with 2, as do cells that only one run has.");
  }

  Outcome run(const Context& context) override {
    if (options_.first.empty()) throw UsageError("the folder of a run is needed");
    if (!(options_.most_megabytes >= 0.1)) throw UsageError("--max-size must be at least 0.1 megabytes");
    if (options_.output != "-") prepare_output(options_.output, existing_);
    const ReportData data = gather(options_, context.progress);
    for (const std::string& warning : data.warnings) log_warning(warning);
    for (const std::string& problem : data.problems) log_error(problem);
    if (data.blocks.empty()) {
      if (options_.second.empty()) throw FormatError(display(options_.first), "has no series");
      throw FormatError(display(options_.first) + " and " + display(options_.second) +
                        " have no series in common");
    }
    bool failed = !data.problems.empty();
    std::vector<std::vector<Alert>> alerts = {alerts_of(options_.first, failed)};
    if (!options_.second.empty()) alerts.push_back(alerts_of(options_.second, failed));
    write(data, alerts);
    const Headline headline = headline_of(data, false);
    log_info(headline.text + (headline.more.empty() ? "" : "\n" + headline.more));
    const Outcome outcome = gate_.end(headline.is_trouble, data.coverage);
    return failed ? Outcome::failure : outcome;
  }

 private:
  /// Empty if the monitor kept no file of alerts.
  static std::vector<Alert> alerts_of(const std::string& folder, bool& failed) {
    if (!is_folder(folder + "/anomaly_detected")) return {};
    MonitorAnalyzeOptions all;
    all.input = folder + "/anomaly_detected";
    all.most = SIZE_MAX;
    AlertRanking ranking = rank_alerts_in(all);
    for (const std::string& warning : ranking.warnings) log_warning(warning);
    for (const std::string& problem : ranking.problems) log_error(problem);
    failed = failed || !ranking.problems.empty();
    return std::move(ranking.first);
  }

  void write(const ReportData& data, const std::vector<std::vector<Alert>>& alerts) const {
    if (options_.output == "-") {
      bool open = true;
      write_report(options_, data, alerts, [&](std::string_view bytes) {
        open = open && write_all(STDOUT_FILENO, bytes, "standard output");
      });
      return;
    }
    OutputFile file(options_.output, existing_);
    write_report(options_, data, alerts, [&](std::string_view bytes) { file.write(bytes); });
    file.commit();
    log_info("written: " + display(options_.output) + " (" + human_bytes(file.size()) + ')');
  }

  ReportOptions options_;
  Existing existing_ = Existing::refuse;
  Gate gate_;
};

}  // namespace

std::unique_ptr<Command> make_report() {
  return std::make_unique<MonitorReportCommand>();
}

}  // namespace msprobe::monitor
