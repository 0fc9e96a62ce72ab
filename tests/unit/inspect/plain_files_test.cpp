// SPDX-License-Identifier: Apache-2.0
#include "inspect/plain_files.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "inspect/text_rating.hpp"
#include "support/byte_source.hpp"

namespace msprobe::inspect::plain_files_test {
namespace {

using formats::Rating;

constexpr std::size_t kBlock = std::size_t{1} << 20;  // in which files are read

bool text(std::string_view bytes) {
  return is_text(*memory_source(bytes));
}

std::string first_finding(std::string_view bytes) {
  const auto found = rate_text(*memory_source(bytes), "config.json", "");
  return found.empty() ? "" : found.front().what;
}

}  // namespace

TEST_CASE("inspect: text is UTF-8 without control characters, wherever a block ends") {
  CHECK(text(""));
  CHECK(text("a\tb\r\n\xc3\xa9\n"));
  CHECK_FALSE(text(std::string_view("a\0b", 3)));
  CHECK_FALSE(text("caf\xe9"));
  CHECK_FALSE(text("a\x01"));
  for (std::size_t before = kBlock - 4; before <= kBlock; ++before) {
    CHECK(text(std::string(before, 'x') + "\xf0\x9f\x98\x80" + "y"));
    CHECK_FALSE(text(std::string(before, 'x') + "\xf0\x9f\x98" + "y"));
    CHECK_FALSE(text(std::string(before, 'x') + "\xf0\x9f\x98"));
  }
}

TEST_CASE("inspect: what a text names is found across blocks") {
  for (const std::size_t before :
       {std::size_t{0}, kBlock - 20, kBlock - 9, kBlock - 1, kBlock, 2 * kBlock - 3}) {
    const std::string padding(before, ' ');
    CHECK(first_finding(padding + R"("_target_": "os.system")") == "_target_ os.system");
    CHECK(first_finding(padding + "{{ x.__globals__ }}") ==
          "a template that leads to Python's internals (__globals__)");
    CHECK(first_finding("{{ " + padding + " x['__mro__'] }}") ==
          "a template that leads to Python's internals (__mro__)");
  }
}

TEST_CASE("inspect: names are rated as those of pickles are") {
  const auto rating = [](std::string_view text) {
    const auto found = rate_text(*memory_source(text), "a.yaml", "here");
    REQUIRE(found.size() == 1);
    CHECK(found.front().where == "here");
    return found.front().rating;
  };
  CHECK(rating("_target_: subprocess.Popen") == Rating::dangerous);
  CHECK(rating("_target_: mypackage.Net") == Rating::unknown);
  CHECK(rating("!!python/object/apply:os.system ['ls']") == Rating::dangerous);
  CHECK(rating("!!python/object:mypackage.Config {}") == Rating::unknown);
  CHECK(rate_text(*memory_source("!!python/tuple [1]\n_target_: collections.OrderedDict\n"), "a.yaml", "")
            .empty());
}

TEST_CASE("inspect: a text names no more than twenty things") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "_target_: a.b" + std::to_string(i) + "\n";
  CHECK(rate_text(*memory_source(text), "a.yaml", "").size() == 20);
}

TEST_CASE("inspect: code is known by its first bytes or its name") {
  const auto kind = [](std::string_view bytes, std::string_view name) {
    return code_kind(*memory_source(bytes), name);
  };
  CHECK(kind("import os", "a/B.PY") == "Python source");
  CHECK(kind("import os", "notes.txt").empty());
  CHECK(kind("\x7f"
             "ELF....",
             "weights") == "machine code");
  CHECK(kind("#!/bin/sh\n", "run") == "a script");
  CHECK(kind("MZ is how this text begins", "a.txt").empty());
}

}  // namespace msprobe::inspect::plain_files_test
