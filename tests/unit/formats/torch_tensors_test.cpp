// SPDX-License-Identifier: Apache-2.0
// Values that lead to tensors in odd ways. What PyTorch writes is in tensor_sets_test.cpp.
#include "formats/torch_tensors.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/formats/elements.hpp"
#include "unit/formats/pt_builder.hpp"

namespace msprobe::formats::torch_tensors_test {
namespace {

/// The opcodes of one tensor, without PROTO and STOP.
std::string tensor() {
  const std::string pickle = PtRecipe{}.pickle();
  return pickle.substr(2, pickle.size() - 3);
}

TorchTensors open(const std::string& value) {
  return TorchTensors(memory_source(build_pt("\x80\x02" + value + "."), "some.pt"));
}

std::vector<std::string> names(const std::string& value) {
  const TorchTensors set = open(value);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < set.size(); ++i) {
    out.push_back(set.name(i));
    CHECK(element_hex(set.tensor(i)) == "6162636465666768");
  }
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("names tell the way") {
  CHECK(names(tensor()) == Names{""});
  CHECK(names("N").empty());
  CHECK(names("](" + tensor() + tensor() + "e") == Names{"0", "1"});
  CHECK(names("}(" + pickled(std::string("a")) + tensor() + "K\x07" + tensor() + "\x88" + tensor() + "N" +
              tensor() + ")" + tensor() + "u") == Names{"a", "7", "True", "None", "(a tuple)"});
  CHECK(names("}(" + pickled(std::string("a")) + "](N" + tensor() + "eu") == Names{"a.1"});
  CHECK(names("}(" + pickled(std::string("")) + tensor() + "u") == Names{""});
}

TEST_CASE("tensors inside calls that are not made") {
  const std::string state = "}(" + pickled(std::string("weight")) + tensor() + "u";
  CHECK(names(global("some", "Thing") + ")R" + state + "b") == Names{"weight"});
  CHECK(names(global("os", "system") + tensor() + "\x85R") == Names{"0"});
}

TEST_CASE("shared and cyclic values are entered once") {
  // A list in itself, and one that stands twice in another.
  CHECK(names("]q\x01(h\x01" + tensor() + "e") == Names{"1"});
  CHECK(names("](](" + tensor() + "eq\x01h\x01" + "e") == Names{"0.0"});
  // Thirty lists, each twice in the next: a way of walking that is not careful takes 2^30 steps.
  std::string bomb = "](" + tensor() + "e";
  for (int i = 0; i < 30; ++i)
    bomb = "](" + bomb + "q" + std::string(1, static_cast<char>(i + 1)) + "h" +
           std::string(1, static_cast<char>(i + 1)) + "e";
  CHECK(names(bomb).size() == 1);
}

TEST_CASE("values that nest too deep are refused, not followed") {
  std::string deep = tensor();
  for (int i = 0; i < TorchTensors::kMaxDepth + 1; ++i) deep += "\x85";
  CHECK_THROWS_WITH_AS(open(deep), doctest::Contains("nested too deeply"), FormatError);
  std::string just = tensor();
  for (int i = 0; i < TorchTensors::kMaxDepth; ++i) just += "\x85";
  CHECK(names(just).size() == 1);
}

TEST_CASE("names that multiply are refused") {
  // One long key in front of many short ones.
  std::string inner = "(";
  for (int i = 0; i < 1000; ++i) inner += "K" + std::string(1, static_cast<char>(i % 100)) + "]";
  const std::string long_key = pickled(std::string(100'000, 'x'));
  CHECK_THROWS_WITH_AS(open("}(" + long_key + "}" + inner + "uu"), doctest::Contains("its tensor names"),
                       FormatError);
}

TEST_CASE("a tensor that is named again and again is refused") {
  std::string again = "(" + tensor() + "q\x01";
  for (int i = 0; i < 60'000; ++i) again += "h\x01";
  CHECK_THROWS_WITH_AS(open(again + "t"), doctest::Contains("more tensors than"), FormatError);
  CHECK(names("(" + tensor() + "q\x01h\x01h\x01t") == Names{"0", "1", "2"});
}

TEST_CASE("a broken tensor hides no other") {
  PtRecipe beyond;
  beyond.offset = 1;
  const std::string pickle = beyond.pickle();
  const TorchTensors set = open("](" + pickle.substr(2, pickle.size() - 3) + tensor() + "e");
  REQUIRE(set.size() == 2);
  CHECK_THROWS_WITH_AS(set.tensor(0), doctest::Contains("beyond its storage"), FormatError);
  CHECK(element_hex(set.tensor(1)) == "6162636465666768");
}

}  // namespace msprobe::formats::torch_tensors_test
