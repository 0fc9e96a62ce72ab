// SPDX-License-Identifier: Apache-2.0
#include "support/manual_page.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "fake_command.hpp"
#include "support/command_line.hpp"

namespace msprobe::support_manual_page_test {

using namespace msprobe;

namespace {

struct DrawCommand final : Command {
  std::string_view name() const override { return "group draw"; }
  std::string_view summary() const override { return "Draw something"; }
  void declare(OptionList& options) override {
    Option target = options.add("-tp,--target-path=PATH", path, "Where to draw");
    target.required({options.add("-i,--input[=FILE]", input, "What").excludes({target})})
        .details("`a\\b` and <c-d> by -i.\nA sentence.\n\n.5 begins it.");
    options.add("--paint", color, "Colour").one_of({"red", "dark-blue"});
  }
  Outcome run(const Context& /*context*/) override { return Outcome::clean; }

  std::string path, input, color = "red";
};

std::string filled(const std::string& command, const std::string& page) {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<FakeCommand>());
  commands.push_back(std::make_unique<DrawCommand>());
  std::istringstream lines(page);
  return fill_page(CommandLine(std::move(commands)).describe(), command, lines);
}

}  // namespace

TEST_CASE("prose stays as it is") {
  const std::string prose = ".SH NAME\nmsprobe \\- draw\n.\\\" a comment\n";
  CHECK(filled("group draw", prose) == prose);
}

TEST_CASE("the synopsis has a line for each way to call a command") {
  CHECK(filled("group draw", ".\\\" SYNOPSIS\n") ==
        "\\fBmsprobe group draw\\fR \\fB\\-tp\\fR \\fIPATH\\fR [\\fIoptions\\fR]\n.br\n"
        "\\fBmsprobe group draw\\fR \\fB\\-i\\fR [\\fIFILE\\fR] [\\fIoptions\\fR]\n");
}

TEST_CASE("options are headed by their names, and details follow the help") {
  const std::string page = filled("group draw", ".\\\" OPTIONS\n");
  CHECK(page.starts_with(
      ".TP\n\\fB\\-tp\\fR, \\fB\\-\\-target\\-path\\fR \\fIPATH\\fR\nWhere to draw.\n"
      "\\fBa\\eb\\fR and \\fIc\\-d\\fR by \\fB\\-i\\fR.\nA sentence.\n.IP\n\\&.5 begins it.\n"
      "Not with \\fB\\-i\\fR.\n"));
  CHECK(page.find("\n.TP\n\\fB\\-\\-paint\\fR \\fBred\\fR|\\fBdark\\-blue\\fR\nColour.\nDefault: "
                  "\\fBred\\fR.\n") != std::string::npos);
  CHECK(page.find("\n.SS Global options\nThese stand before or after the command.\n.TP\n") !=
        std::string::npos);
}

TEST_CASE("the program has the commands, and a group its own") {
  CHECK(filled("", ".\\\" COMMANDS\n") ==
        ".TP\n\\fBcompare\\fR\nCompare two things; see\n.BR msprobe-compare (1).\n"
        ".TP\n\\fBgroup draw\\fR\nDraw something; see\n.BR msprobe-group-draw (1).\n");
  CHECK(filled("group", ".\\\" COMMANDS\n") ==
        ".TP\n\\fBdraw\\fR\nDraw something; see\n.BR msprobe-group-draw (1).\n");
}

}  // namespace msprobe::support_manual_page_test
