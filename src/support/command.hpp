// SPDX-License-Identifier: Apache-2.0
// What a subcommand is: options bound to a plain struct, and one run. program.cpp holds the list of them.
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

/// What every command gets from the global options.
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
  /// As typed; two words where several commands belong together: "monitor analyze".
  virtual std::string_view name() const = 0;
  /// Names of the Python tool that stand for it.
  virtual std::vector<std::string> other_names() const { return {}; }
  virtual std::string_view summary() const = 0;  // one line of `msprobe --help`
  /// Declares options (support/option_list.hpp) and binds them to members. Opens nothing.
  virtual void declare(OptionList& options) = 0;
  /// Are there units that other processes of a job may take over (support/team.hpp)? Else its root runs it
  /// alone.
  virtual bool shares_work() const { return false; }
  /// And may these see different files? Then Context::local can be true.
  virtual bool takes_local_input() const { return false; }
  /// Does the work. Called after parsing; throws Error to stop.
  virtual Outcome run(const Context& context) = 0;
};

using MadeCommand = std::unique_ptr<Command>;

}  // namespace msprobe
