// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "bisect/command.hpp"
#include "report/terminal.hpp"
#include "support/command.hpp"
#include "support/command_line.hpp"
#include "support/completion.hpp"
#include "support/dry_run.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/manual_page.hpp"
#include "support/options.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/side_by_side.hpp"
#include "support/stage.hpp"
#include "support/team.hpp"
#include "support/version.hpp"
#include "support/versions.hpp"
#include "tensor/isa.hpp"

namespace msprobe {

// The command.cpp of each folder defines these.
namespace anomaly {
MadeCommand make_nan_analyze();     // as releases 8.x call it
MadeCommand make_overflow_check();  // as releases 26.x call the same
}  // namespace anomaly
namespace ckpt_compare {
MadeCommand make_command();
}
namespace code_mapping {
MadeCommand make_command();
}
namespace compare {
MadeCommand make_command();
}
namespace config_check {
MadeCommand make_command();
}
namespace docs {
MadeCommand make_command();
}
namespace grad_compare {
MadeCommand make_command();
}
namespace graph {
MadeCommand make_graph_visualize();  // as releases 26.x call it
MadeCommand make_graph();            // as releases 8.x call the same
}  // namespace graph
namespace inspect {
MadeCommand make_command();
}
namespace merge_result {
MadeCommand make_command();
}
namespace monitor {
MadeCommand make_alerts();
MadeCommand make_analyze();
MadeCommand make_compare();
MadeCommand make_csv2tb();
MadeCommand make_report();
MadeCommand make_trend(std::string_view name);
}  // namespace monitor
namespace parse {
MadeCommand make_command();
}
namespace precheck {
MadeCommand make_acc_check(std::string_view name);
MadeCommand make_api_precision_compare();
MadeCommand make_op_generate();
MadeCommand make_run_overflow_check();
}  // namespace precheck

namespace {

/// Every command, in the order of the help text.
std::vector<MadeCommand> all_commands() {
  std::vector<MadeCommand> commands;
  commands.push_back(compare::make_command());
  commands.push_back(bisect::make_command());
  commands.push_back(merge_result::make_command());
  commands.push_back(anomaly::make_nan_analyze());
  commands.push_back(anomaly::make_overflow_check());
  commands.push_back(graph::make_graph_visualize());
  commands.push_back(graph::make_graph());
  commands.push_back(ckpt_compare::make_command());
  for (const char* name : {"acc_check", "multi_acc_check", "run_ut", "multi_run_ut"})
    commands.push_back(precheck::make_acc_check(name));
  commands.push_back(precheck::make_api_precision_compare());
  commands.push_back(precheck::make_op_generate());
  commands.push_back(precheck::make_run_overflow_check());
  commands.push_back(grad_compare::make_command());
  commands.push_back(code_mapping::make_command());
  commands.push_back(parse::make_command());
  commands.push_back(inspect::make_command());
  commands.push_back(config_check::make_command());
  commands.push_back(monitor::make_analyze());
  commands.push_back(monitor::make_alerts());
  commands.push_back(monitor::make_compare());
  commands.push_back(monitor::make_report());
  commands.push_back(monitor::make_csv2tb());
  commands.push_back(monitor::make_trend("monitor csv2db"));
  commands.push_back(monitor::make_trend("data2db"));
  commands.push_back(docs::make_command());
  return commands;
}

/// Commands of the Python tool that are not here.
std::vector<AbsentCommand> absent_commands() {
  return {
      {"config_checking", "its name is config_check now, with the same options"},
      {"offline_dump", "no model is run here; the Python tool does that, beside the vendor's toolkit"},
      {"install_deps", "msprobe needs no other packages"},
  };
}

void print(const std::string& text) {
  write_all(STDOUT_FILENO, text, "standard output");  // a reader that closed the pipe has all it wanted
}

std::string version() {
  warn_of_python_tool();
  std::vector<std::string_view> available;
  for (const tensor::Isa isa : tensor::available_isas()) available.push_back(tensor::isa_name(isa));
  return version_text(tensor::isa_name(tensor::best_isa()), available);
}

/// Everything but the work itself.
int show_plan(Command& command, const Context& context, std::size_t processes) {
  if (!team().is_root()) return kClean;
  DryRun dry_run(processes);
  Team* const working = &team();
  set_team(&dry_run);
  command.run(context);
  set_team(working);
  print(dry_run.plan());
  return kClean;
}

int run_command(const Request& request) {
  const GlobalOptions& globals = request.globals;
  if (globals.quiet) {
    set_log_level(LogLevel::quiet);
  } else if (globals.verbosity > 0) {
    set_log_level(globals.verbosity > 1 ? LogLevel::debug : LogLevel::verbose);
  }
  const ThreadLimit limit(globals.jobs);
  Progress progress(team().is_root() ? globals.progress : ProgressMode::never);
  const auto color = [&](int descriptor) {
    return want_color(globals.color, report::is_terminal(descriptor),
                      [](const char* name) { return std::getenv(name); });
  };
  const Context context{globals.framework,    globals.jobs, color(STDERR_FILENO),
                        color(STDOUT_FILENO), &progress,    globals.local};
  const auto begun = std::chrono::steady_clock::now();
  log_verbose(fmt::format("msprobe {} {}: {} thread{}, {} arithmetic", kVersion, request.command->name(),
                          most_threads(), most_threads() == 1 ? "" : "s",
                          tensor::isa_name(tensor::best_isa())));
  if (globals.dry_run > 0) return show_plan(*request.command, context, globals.dry_run);
  const Outcome outcome = request.command->run(context);
  log_verbose(usage_line(begun));
  switch (outcome) {
    case Outcome::clean:
      return kClean;
    case Outcome::findings:
      return kFindings;
    case Outcome::failure:
      break;
  }
  return kFailure;
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
  CommandLine line(all_commands(), absent_commands());
  // Completion scripts, tests and the build of the manual pages ask for this. It is not for people, so the
  // help omits it.
  if (!arguments.empty() && arguments[0] == "__options") {
    print(options_json(line.describe()));
    return kClean;
  }
  if (!arguments.empty() && arguments[0] == "__page") {
    const std::string command = fmt::format("{}", fmt::join(arguments.begin() + 1, arguments.end(), " "));
    print(fill_page(line.describe(), command, std::cin));
    return kClean;
  }
  if (arguments.size() >= 3 && arguments[0] == "__complete" && arguments[2] == "--") {
    const auto shell = shell_from_name(arguments[1]);
    if (!shell) throw UsageError("unknown shell");
    print(complete(line.describe(), *shell, {arguments.begin() + 3, arguments.end()}));
    return kClean;
  }

  if (bisect::takes(arguments)) {
    // Only options come before the two commands.
    line.parse({arguments.begin(), std::find(arguments.begin(), arguments.end(), "--")});
    bisect::start(arguments);
  }
  const Request request = line.parse(arguments);
  const bool shared = request.kind == Request::RequestedAction::run && request.command->shares_work();
  if (!team().is_root() && !shared) return kClean;
  switch (request.kind) {
    case Request::RequestedAction::help:
      print(help_text(line.describe(), request.command == nullptr ? request.group : request.command->name()));
      return kClean;
    case Request::RequestedAction::version:
      print(version());
      return kClean;
    case Request::RequestedAction::run:
      break;
  }
  return run_command(request);
}

int report_failures(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Interrupted&) {
    log_info("msprobe: interrupted");
    return kInterrupted;
  } catch (const Error& error) {
    log_error(error.what());
    if (!error.hint().empty()) log_hint(error.hint());
  } catch (const std::bad_alloc&) {
    log_error("not enough memory");
  } catch (const std::exception& error) {
    log_error(error.what());
  }
  return kFailure;
}

}  // namespace msprobe
