// SPDX-License-Identifier: Apache-2.0
#include "inspect/plain_files.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::inspect::plain_files_test {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;  // in which files are read

bool text(std::string_view bytes) {
  return is_text(*memory_source(bytes));
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
