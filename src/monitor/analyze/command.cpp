// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "monitor/analyze/analyze.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

class AnalyzeCommand final : public Command {
 public:
  std::string_view name() const override { return "monitor analyze"; }
  std::vector<std::string> other_names() const override { return {"anomaly_processor"}; }
  std::string_view summary() const override {
    return "Rank the alerts of a training monitor: the first ones";
  }

  void declare(OptionList& options) override {
    options
        .add("-d,--data_path=DIR", options_.input,
             "Folder anomaly_detected of a monitor, or its parent folder")
        .required();
    options.add("-o,--out_path=DIR", output_, "Folder for anomaly_analyse.json, or - for standard output")
        .default_text("the folder of -d");
    options.add("-k,--topk=NUMBER", options_.most, "Number of alerts to list").in_range(1);
    options.add("-s,--step,--step_list=LIST", steps_,
                "Steps, such as \"[3, 4]\"; alerts of other steps are ignored");
    gate_.declare(options, "ranks", {"alert", "never"})
        .details(
            "Only alerts of the steps of --step count.\n"
            "A step of --step that lies outside of what was monitored, as far as alerts and csv files tell, "
            "exits "
            "with 2.");
    options.add_flag("--python-rules", python_rules_, "Has no effect").manual_only();
  }

  Outcome run(const Context&) override {
    if (python_rules_) report_without_effect(name(), "--python-rules");
    if (!steps_.empty()) {
      const auto steps = parse_steps(steps_);
      if (!steps)
        throw UsageError("-s/--step: '" + display(steps_) + "' is not a list of steps such as [3, 4]");
      options_.steps = *steps;
    }
    const std::string folder = output_.empty() ? options_.input : output_;
    const std::string path = folder + "/anomaly_analyse.json";
    const AlertRanking ranking = rank_alerts_in(options_);
    if (folder == "-") {
      write_all(STDOUT_FILENO, alerts_json(ranking.first) + "\n", "standard output");
    } else {
      create_directories(folder);
      OutputFile file(path);
      file.write(alerts_json(ranking.first));
      file.commit();
    }
    tell(ranking, folder == "-" ? std::string() : path);
    const Outcome outcome = gate_.end(ranking.all > 0, ranking.coverage, ranking.not_judged);
    return ranking.problems.empty() ? outcome : Outcome::failure;
  }

 private:
  static void tell(const AlertRanking& ranking, const std::string& path) {
    for (const std::string& warning : ranking.warnings) log_warning(warning);
    for (const std::string& problem : ranking.problems) log_error(problem);
    if (!path.empty()) log_info("written: " + display(path));
    if (ranking.missing > 0) {
      log_info(fmt::format("{} of NaN {} left out: the csv files show that there was no tensor.",
                           ranking.missing == 1 ? "1 alert" : human_count(ranking.missing) + " alerts",
                           ranking.missing == 1 ? "is" : "are"));
    }
    if (ranking.all == 0) {
      log_info(ranking.missing == 0 ? "There are no alerts." : "There are no other alerts.");
      return;
    }
    log_info(fmt::format("The first {} of {} alerts:", human_count(ranking.first.size()),
                         human_count(ranking.all)));
    for (std::size_t i = 0; i < ranking.first.size(); ++i)
      log_info(fmt::format("{}: {}", i, display(ranking.first[i].message)));
  }

  MonitorAnalyzeOptions options_;
  std::string output_;
  std::string steps_;
  Gate gate_;
  bool python_rules_ = false;
};

}  // namespace

std::unique_ptr<Command> make_analyze() {
  return std::make_unique<AnalyzeCommand>();
}

}  // namespace msprobe::monitor
