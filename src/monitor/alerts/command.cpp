// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "monitor/alerts/replay.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/output_folder.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

class AlertsCommand final : public Command {
 public:
  std::string_view name() const override { return "monitor alerts"; }
  std::string_view summary() const override { return "Apply alert rules to a training monitor's files"; }

  void declare(OptionList& options) override {
    options.add("-d,--data_path=DIR", options_.input, "Folder with the rank folders, of either monitor")
        .required();
    const Option rule =
        options
            .add("--rule=RULE", rules_, "AnomalyNan, AnomalyNan:LIMIT or AnomalyTurbulence:SHARE; repeatable")
            .details(
                "`AnomalyTurbulence:`<SHARE>: the norm or the mean is larger than the running mean times (1 "
                "+ <SHARE>).\n"
                "`AnomalyNan`: a number is NaN.\n"
                "`AnomalyNan:`<LIMIT>: it is NaN, or its magnitude is larger than <LIMIT>, as that of an "
                "infinity is.")
            .suggest({"AnomalyNan", "AnomalyTurbulence:0.5"})
            .take_all();
    const Option config = options.add("--config=FILE", config_, "Configuration of a monitor with alert rules")
                              .details("They are under its key <alert>.");
    options.require_one_of({rule, config});
    options.add("-o,--out_path=DIR", options_.output, "Folder for rank0/anomaly.json and so on")
        .details(
            "`msprobe-monitor-analyze`(1) reads them.\n"
            "A rank without alerts gets an empty object.");
    options.add("-k,--topk=NUMBER", options_.most, "Number of alerts to list");
    gate_.declare(options, "series", {"alert", "never"})
        .details(
            "A series of which a rule can judge no value, or none of a step that is NaN or infinite "
            "throughout, "
            "exits with 2.");
  }

  Outcome run(const Context& context) override {
    std::vector<std::string> warnings;
    options_.rules = config_.empty() ? parse_rules(rules_) : read_rules_file(config_, warnings);
    if (!options_.output.empty()) check_output_folder(options_.output);
    for (const std::string& warning : warnings) log_warning(display(warning));
    const Replay replay = replay_alerts(options_, context.progress);
    for (const std::string& warning : replay.warnings) log_warning(warning);
    for (const std::string& problem : replay.problems) log_error(problem);
    if (replay.values == 0 && replay.problems.empty())
      throw FormatError(display(options_.input), "has no values of a training monitor");
    std::string listed;
    for (const Alert& alert : replay.first) listed += display(alert.message) + "\n";
    write_all(STDOUT_FILENO, listed, "standard output");
    log_info(fmt::format("{} alert{} in {} value{}", human_count(replay.all), replay.all == 1 ? "" : "s",
                         human_count(replay.values), replay.values == 1 ? "" : "s"));
    if (!options_.output.empty()) log_info("  written: " + display(options_.output));
    const Outcome outcome = gate_.end(replay.all > 0, replay.coverage);
    return replay.problems.empty() ? outcome : Outcome::failure;
  }

 private:
  ReplayOptions options_;
  std::vector<std::string> rules_;
  std::string config_;
  Gate gate_;
};

}  // namespace

std::unique_ptr<Command> make_alerts() {
  return std::make_unique<AlertsCommand>();
}

}  // namespace msprobe::monitor
