// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "graph/data/item_texts.hpp"
#include "graph/pair/arguments.hpp"
#include "graph/pair/release8.hpp"
#include "graph/vis/short_stack.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

ItemText item_of(bool output, const std::string& members) {
  ItemText item;
  item.output = output;
  item.members = members;
  return item;
}

std::string list_of(const std::vector<std::string>& lines) {
  JsonWriter json;
  json.value(lines);
  return json.take();
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
  CHECK_FALSE(release8_collection({none, none}, false, false).index);
  CHECK(release8_collection({none}, false, true).index == 0);
  CHECK(release8_collection({}, true, true).index == 1);
  CHECK(release8_collection({low, high, none}, false, false).index == 0.5);
  CHECK(release8_collection({low, high}, false, false).is_real);
  CHECK(release8_collection({most, low, none}, true, false).index == 0);  // 0 is different
}

TEST_CASE("nodes pair by the types and shapes of their arguments and results") {
  NodeData one;
  one.items = {item_of(false, R"("type": "torch.Tensor", "shape": "[2, 3]", "Max": "1.0")"),
               item_of(true, R"("type": "int", "shape": "[]")")};
  NodeData other = one;
  CHECK(same_arguments(one, other, false));
  other.items[0].members = R"("type": "torch.Tensor", "shape": "[3, 2]", "Max": "1.0")";
  CHECK_FALSE(same_arguments(one, other, false));
  CHECK_FALSE(same_arguments(one, other, true));
  other = one;
  other.items[1].members = R"("type": "float", "shape": "[]")";
  CHECK_FALSE(same_arguments(one, other, false));
  CHECK(same_arguments(one, other, true));
  other = one;
  other.items.push_back(item_of(true, R"("value": "null")"));
  CHECK_FALSE(same_arguments(one, other, false));
  CHECK(same_arguments(one, other, true));  // as far as both have some
  one.items.push_back(item_of(true, R"("value": "null", "type": "null")"));
  CHECK(same_arguments(one, other, false));
}

TEST_CASE("of a call stack the line that counts is kept") {
  const std::string stack = list_of({"x = self.fc1(y)", "z = AddTemplate(x)", "\u00e9Template(x)", "last"});
  CHECK(short_stack("Module.net.fc1.Linear.forward.0", stack) == list_of({"x = self.fc1(y)"}));
  CHECK(short_stack("Cell.net.Add.Linear.backward.0", stack) == stack);
  CHECK(short_stack("Torch.add.0.forward", stack) == list_of({"\u00e9Template(x)"}));
  CHECK(short_stack("optimizer", stack) == stack);
  for (const std::string line : {"Template(", "fooTemplate(", "_AddTemplate(", "Add1Template(",
                                 "\u00e9Template(", "AddTemplates(", "my_api_template("})
    CHECK(short_stack("Torch.add.0.forward", list_of({line, "last"})) == list_of({line, "last"}));
  for (const std::string line : {"api_template(", "x.AddTemplate(", "(TTemplate(a)"})
    CHECK(short_stack("Torch.add.0.forward", list_of({line, "last"})) == list_of({"last"}));
  CHECK(short_stack("Torch.add.0.forward", list_of({"AddTemplate("})) == list_of({"AddTemplate("}));
  CHECK(short_stack("Torch.add.0.forward", "[]") == "[]");
}

}  // namespace msprobe::graph
