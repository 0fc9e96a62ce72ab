// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <doctest/doctest.h>

#include <string>

#include "program.hpp"
#include "support/error.hpp"

namespace msprobe {
namespace {

TEST_CASE("a check that holds does nothing") {
  CHECK_NOTHROW(check(true, "one is one"));
}

TEST_CASE("a check that fails names the invariant, the file and the line, and is no Error of an input") {
  std::string text;
  const int line = __LINE__ + 2;
  try {
    check(false, "one is two");
  } catch (const Error&) {
    FAIL("an Error of an input");
  } catch (const std::logic_error& error) {
    text = error.what();
  }
  CHECK(text.starts_with("internal error, please report it: "));
  CHECK(
      text.ends_with("check_test.cpp:" + std::to_string(line) + ": an invariant does not hold: one is two"));
}

TEST_CASE("a command in which a check fails ends with status 2") {
  CHECK(report_failures([]() -> int {
          check(false, "a command has no bugs");
          return 0;
        }) == 2);
}

}  // namespace
}  // namespace msprobe
