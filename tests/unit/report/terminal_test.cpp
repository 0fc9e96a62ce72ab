// SPDX-License-Identifier: Apache-2.0
#include "report/terminal.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "unit/support/scratch_directory.hpp"

namespace msprobe::report_terminal_test {

using namespace msprobe;
using namespace msprobe::report;

TEST_CASE("columns are aligned, numbers to the right") {
  CHECK(render_columns({"Result", "Rows"}, {{"pass", "1,234"}, {"error", "7"}}, {}) ==
        "  Result   Rows\n"
        "  pass    1,234\n"
        "  error       7\n");
  CHECK(render_columns({}, {{"a", "long text"}, {"bcd", "x"}}, {.indent = 0}) == "a    long text\nbcd  x\n");
  CHECK(render_columns({"Cosine", "Err"}, {{"0.99", "12.5%"}, {"N/A", "N/A"}, {"nan", ""}}, {.indent = 0}) ==
        "Cosine    Err\n"
        "  0.99  12.5%\n"
        "   N/A    N/A\n"
        "   nan\n");
  CHECK(render_columns({}, {}, {}).empty());
  CHECK(render_columns({"a", "b"}, {{"1"}}, {.indent = 0}) == "a  b\n1\n");
}

TEST_CASE("rows that do not fit stand on several lines, and nothing is cut") {
  const std::string name = "Module.encoder.layers.31.self_attn.Linear.forward.12.output.0";
  const std::vector<std::string> header = {"Name", "Result", "Shape", "Max"};
  const std::vector<std::vector<std::string>> rows = {{name, "error", "[2, 3]", "0.5"},
                                                      {"short", "pass", "", "1"}};
  CHECK(render_columns(header, rows, {.width = 40}) == "  " + name +
                                                           "\n"
                                                           "      Result error  Shape [2, 3]\n"
                                                           "      Max 0.5\n"
                                                           "  short  Result pass  Max 1\n");
  CHECK(render_columns({}, {rows[0]}, {.width = 40}) == "  " + name + "\n      error  [2, 3]  0.5\n");
  // One column less than the line needs, and just as many.
  const std::size_t whole = 2 + name.size() + 2 + 6 + 2 + 6 + 2 + 3;
  CHECK(render_columns(header, rows, {.width = whole - 1}).starts_with("  " + name + "  Result error\n"));
  CHECK(render_columns(header, rows, {.width = whole}).starts_with("  Name"));
  CHECK(render_columns(header, {}, {.width = 5}) == "  Name  Result  Shape  Max\n");
  CHECK(render_columns({}, {{"", ""}, {}}, {.width = 0}) == "\n\n");
}

TEST_CASE("texts are cut in the middle") {
  CHECK(elide_middle("Module.encoder.layers.31.self_attn.Linear.forward.12.output.0", 31) ==
        "Module.encoder...rd.12.output.0");
  CHECK(elide_middle("short", 20) == "short");
  CHECK(elide_middle("0123456789", 9) == "012...789");
  CHECK(elide_middle("0123456789", 3) == "012");
  CHECK(elide_middle("0123456789", 0).empty());
}

TEST_CASE("widths count what a terminal shows") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("\xE4\xB8\xAD\xE6\x96\x87") == 4);  // two Chinese characters
  CHECK(display_width("e\xCC\x81") == 1);                 // e with a combining accent
  CHECK(display_width("\xF0\x9F\x98\x80") == 2);          // an emoji
  CHECK(display_width(elide_middle("\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD", 8)) <= 8);
  CHECK(render_columns({}, {{"\xE4\xB8\xAD", "x"}, {"abc", "y"}}, {.indent = 0}) ==
        "\xE4\xB8\xAD   x\nabc  y\n");
}

TEST_CASE("colours follow the severity of the row, and only when enabled") {
  TerminalStyle style{
      .indent = 0, .color = true, .severities = {Severity::error, Severity::none, Severity::warning}};
  const std::vector<std::vector<std::string>> rows = {{"a"}, {"b"}, {"c"}};
  CHECK(render_columns({"x"}, rows, style) ==
        "\x1b[1mx\x1b[0m\n"
        "\x1b[31ma\x1b[0m\n"
        "b\n"
        "\x1b[33mc\x1b[0m\n");
  style.color = false;
  CHECK(render_columns({"x"}, rows, style) == "x\na\nb\nc\n");
  CHECK(paint("ok", Color::green, true) == "\x1b[32mok\x1b[0m");
  CHECK(paint("ok", Color::green, false) == "ok");
  CHECK(paint("", Color::green, true).empty());
}

TEST_CASE("hostile names do not reach the terminal") {
  const std::string hostile = "a\x1b]0;owned\x07\nb\xC2\x9B";
  CHECK(paint(hostile, Color::none, false) == "a\\x1b]0;owned\\x07\\x0ab\\x9b");
  for (const std::size_t width : {5U, 12U, 100U}) {
    const std::string text = render_columns({hostile}, {{hostile}}, {.width = width});
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find('\x07') == std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  }
  const std::string huge(1'000'000, 'x');
  CHECK(render_columns({"a", "b"}, {{huge, huge}}, {.width = 60}).size() < 4 * kWholeLine + 100);
}

TEST_CASE("a sentence runs on, beside the names or below them") {
  const std::string name = "Module.encoder.layers.17.self_attn.Linear.forward.0.output.0";
  const std::string reason(70, 'r');
  const TerminalStyle narrow{.width = 60, .indent = 0, .sentences = true};
  CHECK(render_columns({}, {{"error", name, reason}}, narrow) ==
        "error\n    " + name + "\n    " + reason + "\n");
  CHECK(render_columns({}, {{"error", "short", reason}}, narrow) == "error  short  " + reason + "\n");
  CHECK(render_columns({}, {{"error", name.substr(0, 40), reason}}, narrow) ==
        "error  " + name.substr(0, 40) + "\n    " + reason + "\n");
}

TEST_CASE("what is no terminal has room for whole names") {
  const int null = ::open("/dev/null", O_WRONLY);
  CHECK(terminal_width(null) == kWholeLine);
  ::close(null);
  CHECK(terminal_width(-1) == kWholeLine);
}

TEST_CASE("lines break at blanks alone") {
  using Lines = std::vector<std::string>;
  CHECK(wrap("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrap("a muchtoolongword b", 5) == Lines{"a", "muchtoolongword", "b"});
  CHECK(wrap("\u6f22\u5b57 ab", 6) == Lines{"\u6f22\u5b57", "ab"});
  CHECK(wrap("", 5) == Lines{""});
}

TEST_CASE("links where the terminal is known to show them, and the file is there") {
  const auto terminal = [](std::map<std::string, std::string> variables) {
    return shows_links([=](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK_FALSE(terminal({{"TERM", "xterm-256color"}}));
  CHECK(terminal({{"TERM", "xterm-256color"}, {"VTE_VERSION", "7006"}}));
  CHECK(terminal({{"TERM_PROGRAM", "vscode"}}));
  CHECK_FALSE(terminal({{"TERM_PROGRAM", "vscode"}, {"FORCE_HYPERLINK", "0"}}));
  CHECK(terminal({{"FORCE_HYPERLINK", "1"}}));

  const test::ScratchDirectory scratch;
  const std::string path = scratch / "a b.py";
  CHECK(link_to_file("a b.py:3", path, "3") == "a b.py:3");
  std::ofstream(path) << "x";
  CHECK(link_to_file("a b.py:3", path, "3") ==
        "\x1b]8;;file://" + (scratch / "a%20b.py") + "#L3\x1b\\a b.py:3\x1b]8;;\x1b\\");
}

}  // namespace msprobe::report_terminal_test
