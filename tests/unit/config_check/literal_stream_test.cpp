// SPDX-License-Identifier: Apache-2.0
#include "config_check/literal_stream.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

namespace msprobe::config_check::literal_stream_test {
namespace {

/// The repr of what the pieces make, or how many brackets are open.
std::string fed(std::initializer_list<std::string_view> pieces) {
  LiteralStream stream;
  for (const std::string_view piece : pieces) {
    if (!stream.done()) stream.feed(piece);
  }
  return stream.done() ? pack::python_repr(stream.take()) : std::to_string(stream.depth()) + " open";
}

}  // namespace

TEST_CASE("Python and JSON literals") {
  CHECK(fed({"{'a': None, \"b\": [1, 2.5, -1e-06, True], 'c': (1, 'x'), 'd': {}, 'e': [[]]}"}) ==
        "{'a': None, 'b': [1, 2.5, -1e-06, True], 'c': [1, 'x'], 'd': {}, 'e': [[]]}");
  CHECK(fed({"{\"a\": null, \"b\": true, \"c\": NaN, \"d\": -Infinity, \"e\": "
             "\"\\u00e9\\ud83d\\ude00\\/\"}"}) == "{'a': None, 'b': True, 'c': nan, 'd': -inf, 'e': 'é😀/'}");
  CHECK(fed({"{'a': 'it\\'s \\x41\\101\\n\\q', 'b': u'x', 'c': 007, 'd': -0, 'e': .5, 'f': inf,}"}) ==
        "{'a': \"it's AA\\n\\\\q\", 'b': 'x', 'c': 7, 'd': 0, 'e': 0.5, 'f': inf}");
  CHECK(fed({"{1: 'a', True: 'b', 'x': 12345678901234567890}"}) ==
        "{'1': 'a', 'True': 'b', 'x': 12345678901234567890}");
  CHECK(fed({"{'a': 1, 'a': 2}"}) == "{'a': 2}");
}

TEST_CASE("a literal over several pieces, texts over several too") {
  CHECK(fed({"{'a': ['x',", "  'y'],", " 'b':", " 1,", "'c': 'one '", "      'two',", "'d': 2}"}) ==
        "{'a': ['x', 'y'], 'b': 1, 'c': 'one two', 'd': 2}");
}

TEST_CASE("pieces that do not belong are left out") {
  CHECK(fed({"{'a': 1,", "INFO: something else, really", "[rank0] loading", "'lonely'", "42", "'b': 2}"}) ==
        "{'a': 1, 'b': 2}");
  CHECK(fed({"{'a': [1,", "step 5: loss 3", "{not a dict}", "2]}"}) == "{'a': [1, 2]}");
}

TEST_CASE("of a piece that goes wrong, what comes up to its last comma is taken") {
  CHECK(fed({"{'a': 1, (WorkerDict pid=9) loading", "'b': [1, 2], WARNING", "'c': 3}"}) ==
        "{'a': 1, 'b': [1, 2], 'c': 3}");
}

TEST_CASE("text after the last bracket does not count") {
  CHECK(fed({"{'a': {'b': 1}} }}} and more"}) == "{'a': {'b': 1}}");
}

TEST_CASE("brackets that do not fit, and too many of them") {
  CHECK(fed({"{'a': [1}"}) == "0 open");
  CHECK(fed({"{'a': 1,", "]", "'b': (2]", "'c': 3"}) == "1 open");
  CHECK(fed({std::string_view("{'a': 1, 'b'")}) == "1 open");
  LiteralStream stream;
  for (int i = 0; i < 10'000; ++i) stream.feed("[");
  CHECK(stream.depth() == 200);
}

}  // namespace msprobe::config_check::literal_stream_test
