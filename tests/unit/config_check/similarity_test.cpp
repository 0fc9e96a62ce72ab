// SPDX-License-Identifier: Apache-2.0
#include "config_check/similarity.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "unit/support/source_root.hpp"

namespace msprobe::config_check::similarity_test {

TEST_CASE("texts are as similar as Python's difflib finds them") {
  std::ifstream in(test::in_source("tests/data/golden/config_check/difflib_ratio.json"));
  const nlohmann::json pairs = nlohmann::json::parse(in);
  REQUIRE(pairs.size() > 10);
  std::size_t longest = 0;
  for (const auto& pair : pairs) {
    const auto a = pair["a"].get<std::string>();
    const auto b = pair["b"].get<std::string>();
    CAPTURE(a);
    CAPTURE(b);
    CHECK(similarity(a, b) == pair["ratio"].get<double>());
    CHECK(similarity(b, a) == pair["ratio_swapped"].get<double>());
    CHECK(similarity_bound(a, b) >= similarity(a, b));
    CHECK(similarity_bound(b, a) >= similarity(b, a));
    longest = std::max(longest, b.size());
  }
  CHECK(longest >= 200);  // from there on frequent characters start no block
}

TEST_CASE("the bound holds, and is low for the same characters in another order") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  for (int i = 0; i < 5000; ++i) {
    std::string a;
    for (std::size_t left = below(24); left > 0; --left) a += static_cast<char>('a' + below(4));
    std::string b = a;
    for (std::size_t edits = below(6); edits > 0; --edits) {
      const std::size_t at = below(b.size() + 1);
      if (below(2) == 0) {
        b.insert(at, 1, static_cast<char>('a' + below(4)));
      } else if (at < b.size()) {
        b.erase(at, 1);
      }
    }
    CAPTURE(a);
    CAPTURE(b);
    REQUIRE(similarity_bound(a, b) >= similarity(a, b));
  }
  CHECK(similarity_bound("abcdefghijklmnopqrst", "tsrqponmlkjihgfedcba") < 0.8);
  CHECK(similarity_bound("abcdefghijklmnopqrst", "abcdefghijklmnopqrst") == 1);
}

TEST_CASE("characters count, not bytes") {
  CHECK(similarity("é", "è") == 0);  // the first of their two bytes is the same
  CHECK(similarity("aé", "a") == doctest::Approx(2.0 / 3));
}

TEST_CASE("very long texts are similar only if they are equal") {
  const std::string text(kMostCompared + 1, 'x');
  CHECK(similarity(text, text) == 1);
  CHECK(similarity(text, text + "y") == 0);
}

}  // namespace msprobe::config_check::similarity_test
