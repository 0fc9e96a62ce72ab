// SPDX-License-Identifier: Apache-2.0
#include "support/completion.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fake_command.hpp"
#include "support/command_line.hpp"

namespace msprobe::support_completion_test {

using namespace msprobe;

namespace {

ProgramInfo program() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<FakeCommand>());
  return CommandLine(std::move(commands)).describe();
}

std::string ask(Shell shell, std::vector<std::string> words) {
  return complete(program(), shell, std::move(words));
}

}  // namespace

TEST_CASE("completion of commands and options") {
  CHECK(ask(Shell::bash, {""}) == "compare\n");
  CHECK(ask(Shell::bash, {}) == "compare\n");
  CHECK(ask(Shell::fish, {"co"}) == "compare\tCompare two things\n");
  CHECK(ask(Shell::zsh, {"co"}) == "compare:Compare two things\n");
  CHECK(ask(Shell::bash, {"--pro"}) == "--progress\n");
  CHECK(ask(Shell::bash, {"compare", "-t"}) == "-tp\n");
  CHECK(ask(Shell::bash, {"compare", "--t"}) == "--target_path\n");
  CHECK(ask(Shell::bash, {"-f", "pytorch", "compare", "--xl"}) == "--xlsx\n");
  // The value of an option is no command.
  CHECK(ask(Shell::bash, {"-f", "compare", "--xl"}).empty());
  CHECK(ask(Shell::bash, {"nonsense", "--xl"}).empty());
}

TEST_CASE("completion of values") {
  CHECK(ask(Shell::bash, {"compare", "-tp", ""}) == ":files\n");
  CHECK(ask(Shell::bash, {"compare", "--rules", "x"}) == ":files\n");
  CHECK(ask(Shell::bash, {"compare", "-o", ""}) == ":dirs\n");
  CHECK(ask(Shell::bash, {"compare", "-o", "--xl"}) == "--xlsx\n");
  CHECK(ask(Shell::fish, {"compare", "--progress", ""}) == "auto\nalways\nnever\n");
  CHECK(ask(Shell::bash, {"-f", "py"}) == "pytorch\n");
  CHECK(ask(Shell::bash, {"compare", "-j", ""}).empty());
}

TEST_CASE("completion after an equals sign") {
  CHECK(ask(Shell::bash, {"compare", "--progress", "=", "al"}) == "always\n");
  CHECK(ask(Shell::bash, {"compare", "--progress", "="}) == "auto\nalways\nnever\n");
  CHECK(ask(Shell::zsh, {"compare", "--progress=al"}) == "--progress=always\n");
  CHECK(ask(Shell::fish, {"compare", "--progress=al"}) == "--progress=always\n");
  CHECK(ask(Shell::bash, {"compare", "--progress", "=", "always", "--xl"}) == "--xlsx\n");
}

TEST_CASE("values that are only proposed are completed, and others accepted") {
  CHECK(ask(Shell::bash, {"compare", "--by", ""}) == "Cosine\nMax diff\n");
  CHECK(ask(Shell::fish, {"compare", "--by=M"}) == "--by=Max diff\n");
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<FakeCommand>());
  auto& command = static_cast<FakeCommand&>(*commands.front());
  CommandLine line(std::move(commands));
  CHECK(line.parse({"compare", "--by", "anything"}).kind == Request::RequestedAction::run);
  CHECK(command.by == "anything");
}

TEST_CASE("completion inside a list with commas") {
  CHECK(ask(Shell::bash, {"compare", "--format", "x"}) == "xlsx\n");
  CHECK(ask(Shell::bash, {"compare", "--format", "xlsx,j"}) == "xlsx,json\n");
  CHECK(ask(Shell::zsh, {"compare", "--format=xlsx,j"}) == "--format=xlsx,json\n");
}

TEST_CASE("the description names every option") {
  const auto json = nlohmann::json::parse(options_json(program()));
  CHECK(json["program"]["name"] == "");
  REQUIRE(json["commands"].size() == 1);
  const auto& command = json["commands"][0];
  CHECK(command["name"] == "compare");
  CHECK(command["options"][0] == nlohmann::json{{"names", {"-tp", "--target_path"}},
                                                {"argument", "PATH"},
                                                {"argument_optional", false},
                                                {"list", false},
                                                {"choices", nlohmann::json::array()},
                                                {"suggestions", nlohmann::json::array()},
                                                {"default", ""},
                                                {"group", "Options"},
                                                {"help", "Side under test"}});
  CHECK(command["options"][2]["names"] == nlohmann::json{"-o", "--output_path"});
  CHECK(command["options"][2]["argument_optional"] == true);
  CHECK(command["options"][4]["choices"] == nlohmann::json{"csv", "xlsx", "json"});
  CHECK(command["options"][4]["list"] == true);
}

TEST_CASE("help shows every name of every option within its width") {
  const ProgramInfo info = program();
  const std::string text = help_text(info, "compare");
  CHECK(text.starts_with("Usage: msprobe compare [options]\n"));
  CHECK(text.find("  -tp, --target_path PATH") != std::string::npos);
  CHECK(text.find("  -o, --output_path [DIR]") != std::string::npos);
  CHECK(text.find("Thresholds; default: built-in\n") != std::string::npos);
  CHECK(text.find("  --format csv,xlsx,json") != std::string::npos);
  for (const OptionInfo& option : info.commands[0].options) {
    for (const std::string& name : option.names) CHECK_MESSAGE(text.find(name) != std::string::npos, name);
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    CHECK(end - begin <= 100);
    begin = end + 1;
  }
  CHECK(help_text(info, "").find("  compare ") != std::string::npos);
}

}  // namespace msprobe::support_completion_test
