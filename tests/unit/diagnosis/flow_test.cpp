// SPDX-License-Identifier: Apache-2.0
// The calls that take a tensor from another call, by its content.
#include "diagnosis/flow.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "dump/side.hpp"
#include "support/byte_source.hpp"

namespace msprobe::diagnosis::flow_test {
namespace {

using Edges = std::vector<FlowEdge>;

std::string number(double value) {
  const std::string text = std::to_string(value);
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": )" + text +
         R"(, "Min": -1, "Mean": 0, "Norm": )" + text + "}";
}

std::string entry(const std::string& name, const std::string& inputs, const std::string& output) {
  return "\"" + name + R"(": {"input_args": [)" + inputs + R"(], "input_kwargs": {}, "output": [)" + output +
         "]}";
}

Edges edges_of(const std::vector<std::string>& entries, const std::vector<bool>& compound) {
  std::string text = R"({"task": "statistics", "data": {)";
  for (std::size_t i = 0; i < entries.size(); ++i) text += (i == 0 ? "" : ",") + entries[i];
  return flow_edges({dump::load_side(*memory_source(text + "}}", "dump.json")), true}, compound);
}

}  // namespace

TEST_CASE("edges lead from who put a tensor out to who takes it, each pair once") {
  const Edges edges =
      edges_of({entry("Torch.a.0.forward", number(1), number(2)),
                entry("Torch.b.0.forward", number(2) + "," + number(2), number(3)),
                entry("Torch.c.0.forward", number(3) + "," + number(2) + "," + number(9), number(4))},
               {false, false, false});
  CHECK(edges == Edges{{1, 0}, {2, 1}, {2, 0}});
}

TEST_CASE("the last that put something out gives it; an entry gives itself nothing") {
  const Edges edges = edges_of({entry("Torch.a.0.forward", number(1), number(2)),
                                entry("Torch.dropout.0.forward", number(2), number(2)),
                                entry("Torch.c.0.forward", number(2), number(3))},
                               {false, false, false});
  CHECK(edges == Edges{{1, 0}, {2, 1}});
}

TEST_CASE("a module hands on the output of an operation within it") {
  const std::vector<std::string> entries = {entry("Torch.a.0.forward", number(1), number(2)),
                                            entry("Module.m.M.forward.0", number(1), number(2)),
                                            entry("Torch.b.0.forward", number(2), number(3))};
  CHECK(edges_of(entries, {false, true, false}) == Edges{{2, 0}});
  CHECK(edges_of(entries, {false, false, false}) == Edges{{2, 1}});
}

TEST_CASE("a trained tensor comes from the model and not from a copy of it") {
  const auto trained = [](const std::string& tensor, bool is) {
    return tensor.substr(0, tensor.size() - 1) + R"(, "requires_grad": )" + (is ? "true}" : "false}");
  };
  for (const bool is : {true, false}) {
    const dump::Side side = dump::load_side(
        *memory_source(R"({"task": "statistics", "data": {)" +
                           entry("Torch.a.0.forward", number(1), trained(number(2), true)) + "," +
                           entry("Torch.b.0.forward", number(1), trained(number(2), false)) + "," +
                           entry("Torch.c.0.forward", trained(number(2), is), number(3)) + "}}",
                       "dump.json"));
    const ContentKeys keys(side, true);
    const std::uint32_t taken = side.apis[2].first;
    ContentMap flow;
    for (const std::uint32_t api : {0U, 1U}) flow.put_outputs(keys, api, false);
    CHECK(side.items[trained_maker(keys, taken, flow.find(keys.of(taken)))].api == (is ? 0 : 1));
  }
}

TEST_CASE("constants are everywhere, and lead nowhere") {
  const std::string zeros =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": 0, "Min": 0, "Mean": 0, "Norm": 0})";
  CHECK(edges_of({entry("Torch.a.0.forward", zeros, zeros), entry("Torch.b.0.forward", zeros, zeros)},
                 {false, false})
            .empty());
}

}  // namespace msprobe::diagnosis::flow_test
