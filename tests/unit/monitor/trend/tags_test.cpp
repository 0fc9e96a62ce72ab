// SPDX-License-Identifier: Apache-2.0
#include "monitor/trend/tags.hpp"

#include <doctest/doctest.h>

#include <string>

#include "monitor/trend/micro_steps.hpp"
#include "monitor/trend/trend.hpp"
#include "support/error.hpp"

namespace msprobe::monitor_tags_test {

using namespace msprobe;
using namespace msprobe::monitor;

namespace {

std::string text(const std::vector<TrendTag>& tags) {
  std::string all;
  for (const TrendTag& tag : tags) all += tag.name + ":" + std::string(tag.category) + " ";
  return all;
}

TEST_CASE("tags of a monitor's series") {
  CHECK(text(series_tags("model.layers.0.fc.weight")) ==
        "model:module layers:module layers.0:layer fc:module weight:module ");
  CHECK(text(series_tags("model.3.4.x")) == "model:module model.3:layer x:module ");
  CHECK(text(series_tags("..")) == "");
}

TEST_CASE("tags of a dump's targets") {
  CHECK(text(dump_tags("Module.model.layers.0.fc.Linear.parameters.weight")) ==
        "parameters.weight:index parameters:default Module:default model:module layers.0:layer "
        "fc.Linear:module ");
  CHECK(text(dump_tags("Functional.linear.input.0")) == "input.0:index Functional.linear:function ");
  CHECK(text(dump_tags("x")) == "x:function ");
}

TEST_CASE("names are mapped one part after the other, and do not grow beyond measure") {
  CHECK(mapped_name({{"a.", ""}, {".b", ".c"}}, "a.x.b.b") == "x.c.c");
  NameMapping doubling;
  for (int i = 0; i < 64; ++i) doubling.emplace_back("a", "aa");
  CHECK_THROWS_AS(mapped_name(doubling, "a"), FormatError);
}

std::string place(const MicroSteps& steps, const std::string& entry) {
  const CallPlace found = steps.place(entry);
  return std::to_string(found.micro_step) + "/" + std::to_string(found.call);
}

constexpr const char* kConstruct = R"({
  "Torch.full.0.forward": null,
  "Functional.linear.0.forward": "Module.a.A.forward.0",
  "Functional.linear.1.forward": "Module.a.A.forward.0",
  "Module.a.A.forward.0": null,
  "Module.b.B.forward.0": null,
  "Module.b.B.backward.0": null,
  "Torch.full.1.forward": null,
  "Functional.linear.2.forward": "Module.a.A.forward.1",
  "Module.a.A.forward.1": null,
  "Module.b.B.forward.1": null,
  "Functional.linear.2.backward": null,
  "Tensor.add_.0.forward": "optimizer",
  "optimizer": null
})";

TEST_CASE("a micro step begins where the first module is called again") {
  const MicroSteps steps(*memory_source(std::string_view(kConstruct)));
  CHECK(steps.count() == 2);
  CHECK(place(steps, "Functional.linear.1.forward") == "0/1");
  CHECK(place(steps, "Functional.linear.2.forward") == "1/0");
  CHECK(place(steps, "Functional.linear.2.backward") == "1/0");
  CHECK(place(steps, "Module.a.A.parameters_grad.1") == "1/0");
  CHECK(place(steps, "Module.b.B.backward.0") == "0/0");
  CHECK(place(steps, "Torch.full.1.forward") == "1/0");
  CHECK(place(steps, "Tensor.add_.0.forward") == "1/0");
  CHECK(place(steps, "Torch.unheard.0.forward") == "0/0");
}

TEST_CASE("numbers of micro steps in the file count, circles end") {
  const MicroSteps numbered(*memory_source(std::string_view(R"({"Module.a.A.forward.0": [null, 0],
      "Module.a.A.forward.1": [null, 3], "Module.b.B.forward.0": ["Module.a.A.forward.1", 3]})")));
  CHECK(numbered.count() == 4);
  CHECK(place(numbered, "Module.b.B.forward.0") == "3/0");
  const auto source = memory_source(std::string_view(
      R"({"Module.a.A.forward.0": "Module.b.B.forward.0", "Module.b.B.forward.0": "Module.a.A.forward.0"})"));
  const MicroSteps circle(*source);
  CHECK(circle.count() == 1);
  CHECK(place(circle, "Module.a.A.forward.0") == "0/0");
}

}  // namespace
}  // namespace msprobe::monitor_tags_test
