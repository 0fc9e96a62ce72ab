// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/command.hpp"

#include <unistd.h>

#include <filesystem>

#include "monitor/analyze/analyze.hpp"
#include "monitor/report/page.hpp"
#include "support/error.hpp"
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
    options
        .add("run1", options_.first, "Folder that the monitor wrote, and that of a second run to lay over it")
        .argument("RUN1");
    options.add("run2", options_.second, "The second run").argument("RUN2");
    options.add("-o,--output_path", options_.output, "The page, or - for standard output")
        .argument("FILE")
        .show_default();
    options.add("--statistics", options_.statistics, "Only these: norm, min, max, mean, ...")
        .argument("NAME")
        .commas();
    options
        .add("--tolerance", options_.tolerance,
             "How many times its own fluctuation a series may differ before it parts")
        .not_negative()
        .show_default();
    options
        .add("--max-size", options_.most_megabytes,
             "Megabytes of numbers; of more, steps are shown in groups")
        .not_negative()
        .show_default();
    options
        .add("--fail-on", fail_on_, "Exit with 1 if the training blows up, or the two part: trouble, never")
        .one_of({"trouble", "never"})
        .show_default();
  }

  Outcome run(const Context& context) override {
    if (options_.first.empty()) throw UsageError("the folder of a run is needed");
    if (!(options_.most_megabytes >= 0.1)) throw UsageError("--max-size: at least 0.1 megabytes are needed");
    if (options_.output != "-") prepare_output(options_.output);
    const ReportData data = gather(options_, context.progress);
    for (const std::string& warning : data.warnings) log_warning(warning);
    for (const std::string& problem : data.problems) log_error(problem);
    if (data.blocks.empty()) throw FormatError(display(options_.first), "has no series");
    bool failed = !data.problems.empty();
    std::vector<std::vector<Alert>> alerts = {alerts_of(options_.first, failed)};
    if (!options_.second.empty()) alerts.push_back(alerts_of(options_.second, failed));
    write(data, alerts);
    const Headline headline = headline_of(data, false);
    log_info(headline.text + (headline.more.empty() ? "" : "\n" + headline.more));
    if (failed) return Outcome::failure;
    return fail_on_ == "trouble" && headline.grade != "good" ? Outcome::findings : Outcome::clean;
  }

 private:
  /// None where the monitor kept no file of them.
  static std::vector<Alert> alerts_of(const std::string& folder, bool& failed) {
    std::error_code none;
    if (!std::filesystem::is_directory(folder + "/anomaly_detected", none)) return {};
    AnalyzeOptions all;
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
    OutputFile file(options_.output);
    write_report(options_, data, alerts, [&](std::string_view bytes) { file.write(bytes); });
    file.commit();
    log_info("The report is saved in: " + display(options_.output) + " (" + human_bytes(file.size()) + ')');
  }

  ReportOptions options_;
  std::string fail_on_ = "never";
};

}  // namespace

std::unique_ptr<Command> make_report() {
  return std::make_unique<MonitorReportCommand>();
}

}  // namespace msprobe::monitor
