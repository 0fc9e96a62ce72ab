// SPDX-License-Identifier: Apache-2.0
// A subcommand: options bound to a plain struct, and one run. program.cpp holds the list of commands.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

class OptionList;
class Progress;

/// How a command ended; the exit status follows from it (0, 1, 2). Interrupted (130) and usage errors are
/// exceptions.
enum class Outcome { clean, findings, failure };

enum class Framework { unspecified, pytorch, mindspore };

/// The values of the global options that every command receives.
struct Context {
  Framework framework = Framework::unspecified;
  int jobs = 0;               // 0: all cores
  bool color = false;         // colour on stderr
  bool output_color = false;  // and on stdout
  Progress* progress = nullptr;
  bool local = false;  // the processes of a job see different files
};

class Command {
 public:
  virtual ~Command() = default;
  /// The name as it is typed; two words if several commands belong together: "monitor analyze".
  virtual std::string_view name() const = 0;
  /// The Python tool's names for this command.
  virtual std::vector<std::string> other_names() const { return {}; }
  virtual std::string_view summary() const = 0;  // one line of `msprobe --help`
  /// Declares options (support/option_list.hpp) and binds them to members. Opens nothing.
  virtual void declare(OptionList& options) = 0;
  /// True if other processes of a job can take over units of work (support/team.hpp). If not, the root runs
  /// the command alone.
  virtual bool shares_work() const { return false; }
  /// True if these processes may also see different files. Then Context::local can be true.
  virtual bool takes_local_input() const { return false; }
  /// Runs the command after parsing; throws Error to stop.
  virtual Outcome run(const Context& context) = 0;
};

using MadeCommand = std::unique_ptr<Command>;

}  // namespace msprobe
