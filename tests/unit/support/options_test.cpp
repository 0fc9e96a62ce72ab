// SPDX-License-Identifier: Apache-2.0
#include "support/options.hpp"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fake_command.hpp"
#include "support/command_line.hpp"
#include "support/error.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::support_options_test {

using namespace msprobe;

namespace {

using Words = std::vector<std::string>;

/// A command line with the fake command, which stays readable after parsing.
struct Parsed {
  explicit Parsed(const Words& words, bool with_fuzzy_match = false) {
    auto owned = std::make_unique<FakeCommand>(with_fuzzy_match);
    command = owned.get();
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(std::move(owned));
    line = std::make_unique<CommandLine>(std::move(commands));
    request = line->parse(words);
  }
  FakeCommand* command = nullptr;
  std::unique_ptr<CommandLine> line;
  Request request;
};

std::string failure(const Words& words) {
  return test::message_of<UsageError>([&] { const Parsed parsed(words); });
}

std::string hint(const Words& words) {
  try {
    const Parsed parsed(words);
  } catch (const UsageError& error) {
    return error.hint();
  }
  return "accepted";
}

bool color(const std::map<std::string, const char*>& variables, bool terminal,
           ColorMode mode = ColorMode::automatic) {
  return want_color(mode, terminal, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second;
  });
}

}  // namespace

TEST_CASE("multi-letter short options are read as the Python tool writes them") {
  for (const Words& words : {Words{"compare", "-tp", "a", "-gp", "b"}, Words{"compare", "-tp=a", "-gp=b"},
                             Words{"compare", "--target_path=a", "--golden_path", "b"},
                             Words{"compare", "--target-path", "a", "--golden-path=b"}}) {
    const Parsed parsed(words);
    CHECK(parsed.request.kind == Request::RequestedAction::run);
    CHECK(parsed.request.command == parsed.command);
    CHECK(parsed.command->target == "a");
    CHECK(parsed.command->golden == "b");
  }
}

TEST_CASE("a value may look like a command, an option or nothing special") {
  CHECK(Parsed({"compare", "-tp", "compare"}).command->target == "compare");
  CHECK(Parsed({"compare", "-tp", "-x"}).command->target == "-x");
  CHECK(Parsed({"compare", "-tp=-gp"}).command->target == "-gp");
  CHECK(Parsed({"compare", "--rules", "-1"}).command->rules == "-1");
  CHECK(Parsed({"compare", "-tp=a=b"}).command->target == "a=b");
  CHECK(failure({"compare", "-tp", "-gp", "b"}) == "option -tp needs a value, but the option -gp follows");
  CHECK(failure({"compare", "-tp"}) == "option -tp needs a value");
  CHECK(failure({"compare", "--target_path="}) == "option --target_path has an empty value");
  CHECK(failure({"compare", "--xlsx=yes"}) == "option --xlsx takes no value");
}

TEST_CASE("single letters keep their usual forms") {
  CHECK(Parsed({"compare", "-o", "dir"}).command->output == "dir");
  CHECK(Parsed({"compare", "-o=dir"}).command->output == "dir");
  CHECK(Parsed({"compare", "-odir"}).command->output == "dir");
  CHECK(Parsed({"compare", "-o", "-"}).command->output == "-");
  const Parsed bare({"compare", "-o", "-tp", "a"});
  CHECK(bare.command->output.empty());
  CHECK(bare.command->target == "a");
  const Parsed together({"compare", "-svj4"});
  CHECK(together.command->stack);
  CHECK(together.request.globals.verbosity == 1);
  CHECK(together.request.globals.jobs == 4);
}

TEST_CASE("the last of two values wins") {
  CHECK(Parsed({"compare", "-tp", "a", "-tp", "b"}).command->target == "b");
}

TEST_CASE("a list is one word") {
  CHECK(Parsed({"compare", "--format", "csv,json", "-s"}).command->formats == Words{"csv", "json"});
  CHECK(failure({"compare", "--format", "csv", "json"}) == "unexpected argument 'json'");
  CHECK(failure({"compare", "--format", "csv,pdf"}) == "--format: 'pdf' is not one of csv, xlsx, json");
}

TEST_CASE("global options stand before and after the command") {
  for (const Words& words :
       {Words{"-f", "pytorch", "-j", "3", "-v", "--progress", "never", "--color=always", "compare", "-v"},
        Words{"compare", "-f", "pytorch", "-j", "3", "-v", "--progress", "never", "--color=always", "-v"},
        Words{"-j8", "-fmindspore", "-v", "compare", "--color", "always", "-f=pytorch", "-vj3",
              "--progress=never"}}) {
    const GlobalOptions globals = Parsed(words).request.globals;
    CHECK(globals.framework == Framework::pytorch);
    CHECK(globals.jobs == 3);
    CHECK(globals.verbosity == 2);
    CHECK(globals.progress == ProgressMode::never);
    CHECK(globals.color == ColorMode::always);
    CHECK_FALSE(globals.quiet);
  }
  CHECK(Parsed({"compare"}).request.globals.framework == Framework::unspecified);
  CHECK(Parsed({"-q", "compare"}).request.globals.quiet);
  CHECK(failure({"-f", "jax", "compare"}) == "--framework: 'jax' is not one of pytorch, mindspore");
  CHECK(failure({"-j", "many", "compare"}) != "accepted");
}

TEST_CASE("-f after the command is fuzzy match unless a framework follows") {
  const Parsed fuzzy({"-f", "pytorch", "compare", "-tp", "a", "-f", "-s"}, true);
  CHECK(fuzzy.command->fuzzy);
  CHECK(fuzzy.command->stack);
  CHECK(fuzzy.request.globals.framework == Framework::pytorch);
  CHECK(Parsed({"compare", "-f"}, true).command->fuzzy);
  CHECK_FALSE(Parsed({"compare", "-f", "mindspore"}, true).command->fuzzy);
  CHECK(failure({"compare", "-f"}).find("--fuzzy_match, which -f means otherwise, is not available") !=
        std::string::npos);
}

TEST_CASE("a long option may be cut short as long as one only begins so") {
  CHECK(Parsed({"compare", "--targ", "a", "--gold=b"}).command->target == "a");
  CHECK(Parsed({"compare", "--targ", "a", "--gold=b"}).command->golden == "b");
  CHECK(Parsed({"compare", "--target-p", "a"}).command->target == "a");
  CHECK(Parsed({"compare", "--xl"}).command->xlsx);
  CHECK(failure({"compare", "--fo", "csv", "--f", "csv"}) == "option --f could be --format, --framework");
  // A whole name is no abbreviation of a longer one.
  CHECK(Parsed({"compare", "--rules", "x"}).command->rules == "x");
}

TEST_CASE("what is not known is named, with a hint") {
  CHECK(failure({"compare", "--bogus"}) == "unknown option '--bogus'");
  CHECK(hint({"compare", "--bogus"}) == "try 'msprobe compare --help'");
  CHECK(hint({"compare", "--rulez", "x"}) == "did you mean --rules? try 'msprobe compare --help'");
  CHECK(hint({"compare", "--gp", "x"}) == "did you mean -gp? try 'msprobe compare --help'");
  CHECK(failure({"compare", "-xyz"}) == "unknown option '-xyz'");
  CHECK(failure({"-tp", "a", "compare"}) == "unknown option '-tp'");
  CHECK(failure({"bogus"}) == "unknown command 'bogus'");
  CHECK(failure({"bo\x1bgus"}) == "unknown command 'bo\\x1bgus'");
  CHECK(failure({"compare", "stray"}) == "unexpected argument 'stray'");
  CHECK(failure({"-v"}) == "no command given");
}

TEST_CASE("help and version") {
  CHECK(Parsed({}).request.kind == Request::RequestedAction::help);
  CHECK(Parsed({"-h"}).request.command == nullptr);
  const Parsed help({"compare", "-tp", "a", "--help"});
  CHECK(help.request.kind == Request::RequestedAction::help);
  CHECK(help.request.command == help.command);
  CHECK(Parsed({"--version"}).request.kind == Request::RequestedAction::version);
  CHECK(Parsed({"compare", "--version"}).request.kind == Request::RequestedAction::version);
  CHECK(Parsed({"-V"}).request.kind == Request::RequestedAction::version);
  CHECK(Parsed({"-v", "compare"}).request.globals.verbosity == 1);
}

TEST_CASE("colour: the option, then NO_COLOR, then the forcing variables, then the terminal") {
  CHECK(color({{"TERM", "xterm"}}, true));
  CHECK_FALSE(color({{"TERM", "xterm"}}, false));
  CHECK_FALSE(color({{"TERM", "dumb"}}, true));
  CHECK_FALSE(color({}, true));
  CHECK_FALSE(color({{"TERM", "xterm"}, {"NO_COLOR", "1"}}, true));
  CHECK(color({{"TERM", "xterm"}, {"NO_COLOR", ""}}, true));
  CHECK(color({{"CLICOLOR_FORCE", "1"}}, false));
  CHECK(color({{"FORCE_COLOR", "1"}}, false));
  CHECK_FALSE(color({{"CLICOLOR_FORCE", "0"}, {"FORCE_COLOR", "0"}}, false));
  CHECK_FALSE(color({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}, false));
  CHECK(color({{"NO_COLOR", "1"}}, false, ColorMode::always));
  CHECK_FALSE(color({{"TERM", "xterm"}, {"FORCE_COLOR", "1"}}, true, ColorMode::never));
}

}  // namespace msprobe::support_options_test
