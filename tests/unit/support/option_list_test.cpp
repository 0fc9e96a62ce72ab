// SPDX-License-Identifier: Apache-2.0
#include "support/option_list.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/command_line.hpp"
#include "support/error.hpp"
#include "support/gate.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::support_option_list_test {

using namespace msprobe;

namespace {

enum class Shape { round, square };

struct RuledCommand final : Command {
  std::string_view name() const override { return "draw"; }
  std::string_view summary() const override { return "Draw something"; }
  void declare(OptionList& options) override {
    options.add_pair(first, second, "FILE", "two files", "Files to draw");
    Option target = options.add("-tp,--target_path=PATH", path, "Where");
    const Option request = options.add("-i,--input=FILE", input, "What").excludes({target}, "-i says where");
    target.required({request}).once();
    options.add("--output=DIR", output, "Folder");
    options.add("--shape", shape, {{"round", Shape::round}, {"square", Shape::square}}, "Form");
    options.add_list("--shapes=LIST", shapes, {{"round", Shape::round}, {"square", Shape::square}}, "Forms");
    const Option fast = options.add_flag("-f1,--fast", quick, "Be fast");
    const Option slow = options.add_flag("--slow", careful, "Be slow");
    options.require_one_of({fast, slow});
    options.add("--count=N", count, "How many").in_range(1, 9).needs(slow, "it takes time");
    options.add("--share", share, "How much").not_negative();
    gate.declare(options, "tensors", {"error", "never"});
  }
  Outcome run(const Context& /*context*/) override { return Outcome::clean; }

  std::string first, second, path, input, output = "./out";
  Gate gate;
  Shape shape = Shape::square;
  std::vector<Shape> shapes = {Shape::square};
  bool quick = false, careful = false;
  std::size_t count = 3;
  double share = 0;
};

struct Line {
  Line() {
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(std::make_unique<RuledCommand>());
    command = static_cast<RuledCommand*>(commands.front().get());
    line = std::make_unique<CommandLine>(std::move(commands));
  }
  RuledCommand* command = nullptr;
  std::unique_ptr<CommandLine> line;
};

/// The error in these words after two operands; an empty text: no error.
std::string complaint(std::vector<std::string> words) {
  words.insert(words.begin(), {"draw", "a", "b"});
  return test::message_of<UsageError>([&] { Line().line->parse(words); }, "");
}

OptionInfo info_of(const std::string& name) {
  const ProgramInfo info = Line().line->describe();
  for (const OptionInfo& option : info.commands.front().options) {
    if (option.names.back() == name) return option;
  }
  return {};
}

}  // namespace

TEST_CASE("rules between options") {
  CHECK(complaint({"-tp", "x", "--fast"}).empty());
  CHECK(complaint({"-i", "x", "--fast"}).empty());
  CHECK(complaint({"--fast"}) == "-tp/--target_path is required, or -i/--input");
  CHECK(complaint({"-tp", "", "--fast"}) == "-tp/--target_path is required, or -i/--input");
  CHECK(complaint({"-tp", "x", "-i", "y", "--fast"}) == "-i and -tp cannot be combined: -i says where");
  CHECK(complaint({"-tp", "x", "-tp", "y", "--fast"}) == "-tp/--target_path is given more than once");
  CHECK(complaint({"-tp", "x"}) == "one of -f1 and --slow is required");
  CHECK(complaint({"-tp", "x", "--slow", "-f1"}) == "-f1 and --slow cannot be combined");
  CHECK(complaint({"-tp", "x", "--fast", "--count", "2"}) == "--count needs --slow: it takes time");
  CHECK(complaint({"-tp", "x", "--slow", "--count", "2"}).empty());
}

TEST_CASE("help and version come before the rules") {
  CHECK(Line().line->parse({"draw", "--help"}).kind == Request::RequestedAction::help);
  CHECK(Line().line->parse({"draw", "--version"}).kind == Request::RequestedAction::version);
}

TEST_CASE("two operands") {
  CHECK_THROWS_WITH_AS(Line().line->parse({"draw"}), "two files are needed", UsageError);
  CHECK_THROWS_WITH_AS(Line().line->parse({"draw", "a"}), "'a' alone: two files are needed", UsageError);
  CHECK(Line().line->describe().commands.front().operands == "FILE1 FILE2");
}

TEST_CASE("values that are refused") {
  CHECK(complaint({"--shape", "flat"}) == "--shape: 'flat' is not one of round, square");
  CHECK(complaint({"--shapes", "round,flat"}) == "--shapes: 'flat' is not one of round, square");
  CHECK(complaint({"--fail-on", "warning"}) == "--fail-on: 'warning' is not one of error, never");
  CHECK(complaint({"--count", "0"}) == "--count: '0' is not a whole number from 1 to 9");
  CHECK(complaint({"--count", "two"}) == "--count: 'two' is not a whole number from 0 on");
  CHECK(complaint({"--count", "-3"}) == "--count: '-3' is not a whole number from 0 on");
  CHECK(complaint({"--share", "-1"}) == "--share: '-1' is not a number from 0 on");
  CHECK(complaint({"--share", "much"}) == "--share: 'much' is not a number");
}

TEST_CASE("values that are taken") {
  Line line;
  line.line->parse({"draw", "a", "b", "-tp=x", "--fast", "--shape", "round", "--shapes=round,square,round",
                    "--output", "", "--share", "0.5"});
  CHECK(line.command->shape == Shape::round);
  CHECK(line.command->shapes == std::vector{Shape::round, Shape::square});
  CHECK(line.command->output == "./out");
  CHECK(line.command->share == 0.5);
}

TEST_CASE("what help says of an option") {
  CHECK(info_of("--output").default_value == "./out");
  CHECK(info_of("--shape").default_value == "square");
  CHECK(info_of("--shape").argument == "round|square");
  CHECK(info_of("--shapes").argument == "LIST");
  CHECK(info_of("--count").default_value == "3");
  CHECK(info_of("--share").default_value.empty());
  CHECK(info_of("--fail-on").default_value == "never");
  CHECK(info_of("--fast").names == std::vector<std::string>{"-f1", "--fast"});
}

}  // namespace msprobe::support_option_list_test
