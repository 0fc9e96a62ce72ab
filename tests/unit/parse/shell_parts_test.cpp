// SPDX-License-Identifier: Apache-2.0
// Words and options of the shell, and the numbers of cn.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "parse/elements.hpp"
#include "parse/words.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::parse::shell_parts_test {
namespace {

using Words = std::vector<std::string>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

formats::StoredTensor floats(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  formats::StoredTensor tensor;
  tensor.shape = {static_cast<std::int64_t>(values.size())};
  tensor.strides = {1};
  tensor.storage = memory_source(std::move(bytes), "floats");
  return tensor;
}

struct Taken {
  std::string out;
  bool flag = false;
  std::vector<WordOption> options = {
      {"-out", "--output_path", "DIR", true, "a folder", [this](const std::string& text) { out = text; }},
      {"-s", "--save", "", false, "a flag", [this](const std::string&) { flag = true; }},
  };
};

}  // namespace

TEST_CASE("blanks part words and nothing quotes") {
  CHECK(split_words("  cn -m\ta  -g b\r\n") == Words{"cn", "-m", "a", "-g", "b"});
  CHECK(split_words("a 'b c'") == Words{"a", "'b", "c'"});
  CHECK(split_words(" \t ").empty());
}

TEST_CASE("options in every spelling") {
  for (const Words& words :
       {Words{"-out", "x", "-s"}, Words{"--output_path", "x", "--save"}, Words{"-s", "--output_path=x"},
        Words{"-out", "'x'", "-s"}, Words{"-out", "y", "-out", "x", "-s"}}) {
    Taken taken;
    CHECK(read_options(words, taken.options));
    CHECK(taken.out == "x");
    CHECK(taken.flag);
  }
  Taken minus;
  CHECK(read_options({"-out", "-5"}, minus.options));
  CHECK(minus.out == "-5");
}

TEST_CASE("wrong options are reported, not guessed") {
  const auto complaint = [](const Words& words) -> std::string {
    Taken taken;
    return test::message_of<UsageError>([&] { read_options(words, taken.options); }, "");
  };
  CHECK(complaint({}) == "option -out is required");
  CHECK(complaint({"-out"}) == "option -out needs a value");
  CHECK(complaint({"-o", "x"}) == "unknown option -o");
  CHECK(complaint({"-out", "x", "y"}) == "unexpected word y");
  CHECK(complaint({"-out", "x", "--save=1"}) == "option --save takes no value");
  CHECK(complaint({"-\x1b[2J"}) == "unknown option -\\x1b[2J");
  Taken help;
  CHECK_FALSE(read_options({"-unknown", "-h"}, help.options));
  CHECK(usage_text("dc", help.options).starts_with("usage: dc -out DIR [-s]\n"));
}

TEST_CASE("numbers out of options") {
  CHECK(read_tolerance("-al", "1e-3") == 0.001);
  CHECK(read_tolerance("-al", "0") == 0);
  for (const char* text : {"", "x", "-1", "nan", "inf", "1x"})
    CHECK_THROWS_AS(read_tolerance("-al", text), UsageError);
  CHECK(read_count("-p", "7") == 7);
  for (const char* text : {"", "0", "-1", "1.5", "99999999999999999999", "1000001"}) {
    CHECK_THROWS_AS(read_count("-p", text), UsageError);
  }
}

TEST_CASE("cn: elements against tolerances") {
  // The cosine is that of NumPy in float64.
  const ElementComparison same =
      compare_elements(floats({1, 2, 3, 4, 5, 6}), floats({1.25, 2.25, 3.25, 4.25, 5.25, 6.25}), {}, 20);
  CHECK(same.count == 6);
  CHECK(same.cosine == doctest::Approx(0.9996459968028786).epsilon(1e-14));
  CHECK(same.wrong == 6);
  CHECK_FALSE(same.all_close);
  const ElementComparison few = compare_elements(floats({1, 2, 3}), floats({1.001F, 2, 3.1F}), {}, 1);
  CHECK(few.wrong == 1);
  REQUIRE(few.first_wrong.size() == 1);
  CHECK(few.first_wrong[0].index == 2);
  CHECK(few.first_wrong[0].difference == 3.1F - 3.0F);
  CHECK(few.first.size() == 1);
  // The relative part is that of the right side.
  CHECK(compare_elements(floats({100}), floats({111}), {0, 0.1}, 20).wrong == 0);
  CHECK(compare_elements(floats({111}), floats({100}), {0, 0.1}, 20).wrong == 1);
}

TEST_CASE("cn: NaN and infinities as NumPy judges them") {
  const ElementComparison nan = compare_elements(floats({kNan, 1}), floats({kNan, 1}), {}, 20);
  CHECK_FALSE(nan.all_close);
  CHECK(nan.wrong == 0);
  CHECK(nan.nan == 1);
  CHECK(std::isnan(nan.cosine));
  const ElementComparison equal = compare_elements(floats({kInfinity}), floats({kInfinity}), {}, 20);
  CHECK(equal.all_close);
  CHECK(equal.wrong == 0);
  const ElementComparison opposite = compare_elements(floats({kInfinity}), floats({-kInfinity}), {}, 20);
  CHECK_FALSE(opposite.all_close);
  const ElementComparison lone = compare_elements(floats({kInfinity}), floats({1}), {}, 20);
  CHECK_FALSE(lone.all_close);
  CHECK(lone.wrong == 1);
  CHECK(std::isnan(compare_elements(floats({0}), floats({0}), {}, 20).cosine));
}

TEST_CASE("cn: the shorter side is padded with zeros") {
  std::vector<float> many(40'000, 1.0F);
  many[39'999] = 0.0F;
  const ElementComparison found = compare_elements(floats({1, 1}), floats(many), {}, 3);
  CHECK(found.count == 40'000);
  CHECK(found.wrong == 39'997);
  REQUIRE(found.first_wrong.size() == 3);
  CHECK(found.first_wrong[0].index == 2);
  CHECK(found.first_wrong[0].left == 0);
  CHECK(found.first_wrong[0].right == 1);
}

TEST_CASE("pt: the specification as NumPy computes it") {
  CHECK(specification(floats({1, 2, 4}), "f") ==
        "[Shape: (3,)] [Dtype: float32] [Max: 4.0] [Min: 1.0] [Mean: 2.3333333]");
  CHECK(specification(floats({1, kNan}), "f") ==
        "[Shape: (2,)] [Dtype: float32] [Max: nan] [Min: nan] [Mean: nan]");
  CHECK_THROWS_WITH_AS(specification(floats({}), "f"), doctest::Contains("f: the data is empty"),
                       FormatError);
}

}  // namespace msprobe::parse::shell_parts_test
