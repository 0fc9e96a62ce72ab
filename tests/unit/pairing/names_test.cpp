// SPDX-License-Identifier: Apache-2.0
#include "pairing/names.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "support/error.hpp"

namespace msprobe::compare_names_test {

using namespace msprobe;
using namespace msprobe::pairing;

namespace {

NameMapping mapping(std::initializer_list<std::pair<const char*, const char*>> entries) {
  NameMapping made;
  for (const auto& [from, to] : entries) REQUIRE(made.add(from, to));
  return made;
}

std::string cell(const NameMapping& names, std::string_view name) {
  return CellNames(names, "map.yaml")(name);
}

/// As Python's str.replace(…, 1) for every key in turn.
std::string replaced_in_turn(const NameMapping& names, std::string path) {
  if (const std::string* whole = names.find(path)) return *whole;
  for (const auto& [from, to] : names.entries()) {
    if (const std::size_t at = path.find(from); at != std::string::npos) path.replace(at, from.size(), to);
  }
  return path;
}

}  // namespace

TEST_CASE("names without their call number, in both forms") {
  CHECK(without_call("Torch.a.3.forward") == "Torch.a.forward");
  CHECK(without_call("Torch.a.3.backward") == "Torch.a.backward");
  CHECK(without_call("Module.x.Linear.forward.0") == "Module.x.Linear.forward");
  CHECK(without_call("Cell.x.Dense.backward.12") == "Cell.x.Dense.backward");
  CHECK(without_call("Module.x.Linear.parameters_grad.1") == "Module.x.Linear.parameters_grad");
  CHECK(without_call("Module.x.Linear.parameters_grad") == "Module.x.Linear.parameters_grad");
  CHECK(without_call("something else") == "something else");
}

TEST_CASE("operations of MindSpore under their names in PyTorch") {
  const NameMapping table =
      mapping({{"Functional.dense", "Functional.linear"}, {"Tensor.equal", "Tensor.eq"}});
  CHECK(to_pytorch("Mint.add.0.forward", table) == "Torch.add.0.forward");
  CHECK(to_pytorch("MintFunctional.relu.0.forward", table) == "Functional.relu.0.forward");
  CHECK(to_pytorch("Functional.dense.3.backward", table) == "Functional.linear.3.backward");
  CHECK(to_pytorch("Functional.denser.3.backward", table) == "Functional.denser.3.backward");
  CHECK(to_pytorch("Cell.Mint.Dense.forward.0", table) == "Cell.Mint.Dense.forward.0");
  CHECK(operation_of("Tensor.add.0.forward.input.0") == "Tensor.add");
  CHECK(operation_of("plain") == "plain");
}

TEST_CASE("cells are modules, and names in the mapping change") {
  CHECK(cell({}, "Cell.fc.Dense.forward.0") == "Module.fc.Dense.forward.0");
  CHECK(cell({}, "Module.rnn.LSTMCell.forward.0") == "Module.rnn.LSTMCell.forward.0");
  const NameMapping names = mapping({{"fc.Dense", "fc.Linear"}, {"Dense", "Other"}, {"Row", "TERow"}});
  CHECK(cell(names, "Cell.fc.Dense.forward.0") == "Module.fc.Linear.forward.0");
  CHECK(cell(names, "Cell.fc.Dense.parameters_grad") == "Module.fc.Linear.parameters_grad");
  CHECK(cell(names, "Cell.fc.Dense.parameters_grad.0") == "Module.fc.Linear.parameters_grad.0");
  CHECK(cell(names, "Cell.a.fc.Dense.backward.0") == "Module.a.fc.Linear.backward.0");
  CHECK(cell(names, "Module.Row.Dense.forward.0") == "Module.TERow.Other.forward.0");
  CHECK(cell(names, "Module.forwarder.Dense.forward.0") == "Module.forwarder.Other.forward.0");
}

TEST_CASE("parts of a path are replaced in the order of the file, as if tried one after the other") {
  std::mt19937 random(3);
  const auto word = [&](std::size_t most) {
    std::string text;
    for (std::size_t i = 1 + random() % most; i > 0; --i) text += static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    NameMapping names;
    for (int i = 0; i < 8; ++i) names.add(word(3), word(4));
    const std::string path = word(12);
    CAPTURE(path);
    CHECK(cell(names, "Module." + path + ".forward.0") ==
          "Module." + replaced_in_turn(names, path) + ".forward.0");
  }
}

TEST_CASE("a mapping cannot make names grow without bound") {
  const std::string b(1500, 'b');
  const std::string c(1500, 'c');
  const std::string d(1500, 'd');
  CHECK(cell(mapping({{"a", b.c_str()}, {"b", c.c_str()}}), "Module.x.a.forward.0").size() == 3018);
  CHECK_THROWS_AS(
      cell(mapping({{"a", b.c_str()}, {"b", c.c_str()}, {"c", d.c_str()}}), "Module.x.a.forward.0"),
      FormatError);
  // A name that is longer to begin with is only looked up as a whole.
  const std::string endless = "Module." + std::string(5000, 'a') + ".forward.0";
  CHECK(cell(mapping({{"a", "b"}}), endless) == endless);
}

}  // namespace msprobe::compare_names_test
