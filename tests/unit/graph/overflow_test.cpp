// SPDX-License-Identifier: Apache-2.0
#include "graph/data/overflow.hpp"

#include <doctest/doctest.h>

#include <string>

#include "unit/dump/entry_text.hpp"

namespace msprobe::graph_overflow_test {

using namespace msprobe;
using namespace msprobe::graph;

TEST_CASE("overflow levels: a mask has one by the Python tool's rules alone") {
  const auto tensor = [](const std::string& statistics) {
    return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [16, 16], )" + statistics + "}";
  };
  const std::string scores = tensor(R"("Max": 2.0, "Min": -3.0, "Mean": 0.1, "Norm": 20.0)");
  const std::string masked =
      tensor(R"("Max": 2.0, "Min": -3.4028234663852886e+38, "Mean": -Infinity, "Norm": Infinity)");
  const std::string broken = tensor(R"("Max": NaN, "Min": NaN, "Mean": NaN, "Norm": NaN)");
  const auto level = [](const std::string& in, const std::string& out, bool as_is) {
    const dump::Entry entry = dump::entry_of(R"({"input_args": [)" + in + R"(], "output": [)" + out + "]}");
    return std::string(overflow_level("Tensor.masked_fill.0.forward", entry, {.python_values = as_is}));
  };
  CHECK(level(scores, masked, false).empty());
  CHECK(level(scores, masked, true) == "critical");
  CHECK(level(masked, scores, false).empty());
  CHECK(level(masked, scores, true) == "medium");
  CHECK(level(scores, broken, false) == "critical");
}

}  // namespace msprobe::graph_overflow_test
