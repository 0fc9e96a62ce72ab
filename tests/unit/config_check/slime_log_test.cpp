// SPDX-License-Identifier: Apache-2.0
#include "config_check/slime_log.hpp"

#include <doctest/doctest.h>

#include "support/error.hpp"

namespace msprobe::config_check::slime_log_test {

using namespace msprobe;
using namespace msprobe::config_check;

namespace {

const std::string kBegin = "------------------------ arguments ------------------------\n";
const std::string kEnd = "-------------------- end of arguments ---------------------\n";

std::string read(const std::string& log) {
  return pack::python_repr(find_slime_config(log, "s.log"));
}

}  // namespace

TEST_CASE("the first block of arguments of a slime log") {
  CHECK(read("noise\n" + kBegin +
             "  lr ......... 1e-06\n  bf16 ....... True\n  empty ......\n  none ....... None\n"
             "  path ....... ['a', 'b c']\n  neg ........ -1\n  plus ....... +5\n  zeros ...... 007\n"
             "  big ........ 123456789012345678901234567890\n  nan ........ nan\nnot ........ 1\njunk\n"
             "  dots ....... /a/.../b  \n  twice ...... 1\n  twice ...... 2\n" +
             kEnd + kBegin + "  lr ... 7\n" + kEnd) ==
        "{'lr': 1e-06, 'bf16': True, 'none': 'None', 'path': \"['a', 'b c']\", 'neg': -1, 'plus': 5.0, "
        "'zeros': 7, 'big': 123456789012345678901234567890, 'nan': 'nan', 'dots': '/a/.../b', 'twice': 2}");
  CHECK(read("(a pid=1) " + kBegin + "(a pid=1)   x ... 1\r\n(b pid=2)   y ... 2\n(a pid=1) " + kEnd) ==
        "{'x': 1}");
}

TEST_CASE("slime logs without arguments") {
  CHECK_THROWS_WITH_AS(read("x\n"), doctest::Contains("s.log: found no block of arguments"), FormatError);
  CHECK_THROWS_WITH_AS(read(kBegin + "  lr ... 1\n"), doctest::Contains("has no end"), FormatError);
  CHECK_THROWS_WITH_AS(read(kBegin + kEnd), doctest::Contains("is empty"), FormatError);
}

}  // namespace msprobe::config_check::slime_log_test
