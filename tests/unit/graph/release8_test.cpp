// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "graph/data/item_texts.hpp"
#include "graph/pair/release8.hpp"
#include "graph/vis/short_stack.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

using Lines = std::vector<std::string>;
constexpr const char* kAll = "all lines";

std::string line_of(std::string_view node, const Lines& lines) {
  JsonWriter json;
  json.value(lines);
  const dump::Entry stack = dump::read_json(json.take(), "stack");
  const dump::Entry::Index line = line_that_counts(node, stack);
  return line == dump::Entry::kNone ? kAll : std::string(stack.text(line));
}

}  // namespace

TEST_CASE("numbers of releases 8.x have six decimals, or seven digits with an exponent") {
  // repr(round(x, 6)), or "{:.6e}".format(x) where repr(x) has an exponent, by Python 3.11.
  CHECK(rounded_text(0.1234565) == "0.123456");
  CHECK(rounded_text(0.9999996) == "1.0");
  CHECK(rounded_text(-2.5) == "-2.5");
  CHECK(rounded_text(0.0001) == "0.0001");
  CHECK(rounded_text(0.00012345678) == "0.000123");
  CHECK(rounded_text(1.23456789e-05) == "1.234568e-05");
  CHECK(rounded_text(123456789.12345678) == "123456789.123457");
  CHECK(rounded_text(1e16) == "1.000000e+16");
  CHECK(rounded_text(5e-324) == "4.940656e-324");
  CHECK(rounded_text(-0.0) == "-0.0");
  CHECK(rounded_text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(rounded_text(std::nan("")) == "nan");
}

TEST_CASE("the index is written as an integer where nothing was measured") {
  CHECK(index_text({.index = 0}) == "0");
  CHECK(index_text({.index = 1}) == "1");
  CHECK(index_text({.index = 1, .is_real = true}) == "1.0");
  CHECK(index_text({.index = 0.1, .is_real = true}) == "0.1");
}

TEST_CASE("a collection has the worst of what it holds") {
  const Release8 none;
  const Release8 low = {.index = 0};
  const Release8 high = {.index = 0.5, .is_real = true};
  const Release8 most = {.index = 1};
  CHECK_FALSE(release8_collection({none, none}, false).index);
  CHECK(release8_collection({low, high, none}, false).index == 0.5);
  CHECK(release8_collection({low, high}, false).is_real);
  CHECK(release8_collection({most, low, none}, true).index == 0);  // 0 is different
}

TEST_CASE("of a call stack the line that counts is kept") {
  const Lines stack = {"x = self.fc1(y)", "z = AddTemplate(x)", "\u00e9Template(x)", "last"};
  CHECK(line_of("Module.net.fc1.Linear.forward.0", stack) == "x = self.fc1(y)");
  CHECK(line_of("Cell.net.Add.Linear.backward.0", stack) == kAll);
  CHECK(line_of("Torch.add.0.forward", stack) == "\u00e9Template(x)");
  CHECK(line_of("optimizer", stack) == kAll);
  for (const std::string line : {"Template(", "fooTemplate(", "_AddTemplate(", "Add1Template(",
                                 "\u00e9Template(", "AddTemplates(", "my_api_template("})
    CHECK(line_of("Torch.add.0.forward", {line, "last"}) == kAll);
  for (const std::string line : {"api_template(", "x.AddTemplate(", "(TTemplate(a)"})
    CHECK(line_of("Torch.add.0.forward", {line, "last"}) == "last");
  CHECK(line_of("Torch.add.0.forward", {"AddTemplate("}) == kAll);
  CHECK(line_of("Module.net.fc1.Linear.forward.0", {"x = self.fc1(y)"}) == kAll);
  CHECK(line_of("Torch.add.0.forward", {}) == kAll);
}

}  // namespace msprobe::graph
