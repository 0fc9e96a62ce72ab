// SPDX-License-Identifier: Apache-2.0
#include "collector/filter.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace msprobe::collector_filter_test {

using namespace msprobe::collector;

namespace {

struct Settings {
  Level level = Level::mix;
  std::vector<std::string> scope = {};
  std::vector<std::string> list = {};
  RiskLevel risk = RiskLevel::all;
};

Filter make(const Settings& settings) {
  Config config;
  config.level = settings.level;
  config.scope = settings.scope;
  config.list = settings.list;
  config.risk_level = settings.risk;
  return Filter(config);
}

/// Runs a network of two blocks, each a linear layer in a module, forward and backward, and returns which
/// parts of which entries are recorded: "i" the input, "o" the output, "b" a backward, "g" gradients of
/// parameters.
std::vector<std::string> recorded(const Settings& settings) {
  Filter filter = make(settings);
  std::vector<std::string> result;
  const auto note = [&](const std::string& entry, const char* part) {
    if (filter.check(entry)) result.push_back(entry + " " + part);
  };
  for (const char* block : {"b1", "b2"}) {
    const std::string outer = "Module." + std::string(block) + ".Blk.forward.0";
    const std::string inner = "Module." + std::string(block) + ".l1.Linear.forward.0";
    const std::string api = std::string("Functional.linear.") + (block[1] == '1' ? "0" : "1") + ".forward";
    filter.open_module(outer);
    note(outer, "i");
    filter.open_module(inner);
    note(inner, "i");
    note(api, "i");
    note(api, "o");
    note(inner, "o");
    filter.close_module(inner);
    note(outer, "o");
    filter.close_module(outer);
  }
  for (const char* block : {"b2", "b1"}) {
    const std::string outer = "Module." + std::string(block) + ".Blk.backward.0";
    const std::string inner = "Module." + std::string(block) + ".l1.Linear.backward.0";
    filter.open_module(outer);
    filter.open_module(inner);
    note(std::string("Functional.linear.") + (block[1] == '1' ? "0" : "1") + ".backward", "b");
    note("Module." + std::string(block) + ".l1.Linear.parameters_grad.0", "g");
    note(inner, "b");
    filter.close_module(inner);
    note(outer, "b");
    filter.close_module(outer);
  }
  return result;
}

using Entries = std::vector<std::string>;

}  // namespace

TEST_CASE("filter: no scope, no list") {
  CHECK(recorded({}).size() == 20);
}

TEST_CASE("filter: list at mix opens a window where a module is named") {
  CHECK(recorded({.list = {"b1.l1"}}) ==
        Entries{"Module.b1.l1.Linear.forward.0 i", "Functional.linear.0.forward i",
                "Functional.linear.0.forward o", "Module.b1.l1.Linear.forward.0 o",
                "Functional.linear.0.backward b", "Module.b1.l1.Linear.parameters_grad.0 g",
                "Module.b1.l1.Linear.backward.0 b"});
  // The full name of a block's forward: that and all within, but no backward.
  CHECK(recorded({.list = {"Module.b1.Blk.forward.0"}}) ==
        Entries{"Module.b1.Blk.forward.0 i", "Module.b1.l1.Linear.forward.0 i",
                "Functional.linear.0.forward i", "Functional.linear.0.forward o",
                "Module.b1.l1.Linear.forward.0 o", "Module.b1.Blk.forward.0 o"});
}

TEST_CASE("filter: list elsewhere is a part of the name") {
  CHECK(recorded({.level = Level::l1, .list = {"linear.1"}}) == Entries{"Functional.linear.1.forward i",
                                                                        "Functional.linear.1.forward o",
                                                                        "Functional.linear.1.backward b"});
}

TEST_CASE("filter: scope of APIs closes with the last one's input") {
  CHECK(recorded({.level = Level::l1,
                  .scope = {"Functional.linear.0.forward", "Functional.linear.1.forward"},
                  .list = {"Functional"}}) == Entries{"Functional.linear.0.forward i",
                                                      "Functional.linear.0.forward o",
                                                      "Functional.linear.1.forward i"});
}

TEST_CASE("filter: scope of modules keeps the last one's output") {
  CHECK(recorded({.level = Level::l0,
                  .scope = {"Module.b1.l1.Linear.forward.0", "Module.b2.l1.Linear.forward.0"},
                  .list = {"Module"}}) ==
        Entries{"Module.b1.l1.Linear.forward.0 i", "Module.b1.l1.Linear.forward.0 o",
                "Module.b1.Blk.forward.0 o", "Module.b2.Blk.forward.0 i", "Module.b2.l1.Linear.forward.0 i",
                "Module.b2.l1.Linear.forward.0 o"});
}

TEST_CASE("filter: scope at mix closes with the last one's input") {
  CHECK(recorded({.scope = {"Module.b1.l1.Linear.forward.0", "Functional.linear.0.forward"}}) ==
        Entries{"Module.b1.l1.Linear.forward.0 i", "Functional.linear.0.forward i"});
  CHECK(recorded({.scope = {"Functional.linear.1.forward", "Module.b2.l1.Linear.forward.0"}}) ==
        Entries{"Functional.linear.1.forward i", "Functional.linear.1.forward o",
                "Module.b2.l1.Linear.forward.0 o"});
}

TEST_CASE("filter: scope that ends with a module's backward keeps the gradients of the parameters inside") {
  for (const Level level : {Level::mix, Level::l0}) {
    Filter filter = make({.level = level, .scope = {"Module.b2.Blk.backward.0", "Module.b1.Blk.backward.0"}});
    for (const char* entry : {"Module.b2.Blk.backward.0", "Module.b1.Blk.backward.0"}) {
      filter.open_module(entry);
      CHECK(filter.check(entry));
      filter.close_module(entry);
    }
    CHECK(filter.check("Module.b1.l1.Linear.parameters_grad.0"));
    CHECK_FALSE(filter.check("Module.b0.Blk.backward.0"));
    CHECK_FALSE(filter.check("Module.b10.Blk.parameters_grad.0"));
    CHECK(filter.check("Module.b1.Blk.parameters_grad.0"));
    CHECK_FALSE(filter.check("Module.b0.Blk.parameters_grad.0"));
    CHECK_FALSE(filter.check("Module.b1.Blk.forward.1"));
    CHECK_FALSE(filter.check("Module.b1.Blk.parameters_grad.1"));  // another pass
  }
}

TEST_CASE("filter: the next step begins with all windows closed") {
  Filter filter = make({.level = Level::l1, .scope = {"Torch.a.0.forward", "Torch.b.0.forward"}});
  CHECK(filter.check("Torch.a.0.forward"));
  CHECK(filter.check("Torch.x.0.forward"));
  filter.next_step();
  CHECK_FALSE(filter.check("Torch.x.0.forward"));
}

TEST_CASE("filter: risk levels") {
  Filter core = make({.level = Level::l1, .risk = RiskLevel::core});
  CHECK(core.risk_of("Functional.linear.0.forward") == RiskLevel::core);
  CHECK(core.risk_of("Torch.chain_matmul.3.backward") == RiskLevel::core);
  CHECK(core.risk_of("Tensor.__matmul__.0.forward") == RiskLevel::core);
  CHECK(core.risk_of("Tensor.addmm_.0.forward") == RiskLevel::core);
  CHECK(core.risk_of("Distributed.all_reduce.0.forward") == RiskLevel::core);
  CHECK(core.risk_of("NPU.anything.0.forward") == RiskLevel::core);
  CHECK(core.risk_of("Tensor.reshape.0.forward") == RiskLevel::all);
  CHECK(core.risk_of("Tensor.squeeze_.0.forward") == RiskLevel::focus);
  CHECK(core.risk_of("Torch.add.0.forward") == RiskLevel::focus);
  CHECK(core.check("Functional.linear.0.forward"));
  CHECK_FALSE(core.check("Torch.add.0.forward"));
  CHECK_FALSE(core.check("Tensor.reshape.0.forward"));
  Filter focus = make({.risk = RiskLevel::focus});
  CHECK(focus.check("Torch.add.0.forward"));
  CHECK_FALSE(focus.check("Tensor.reshape.0.forward"));
  CHECK(focus.check("Module.view.forward.0"));
  // A list decides alone.
  Filter listed = make({.level = Level::l1, .list = {"reshape"}, .risk = RiskLevel::core});
  CHECK(listed.check("Tensor.reshape.0.forward"));
}

TEST_CASE("filter: the user's operations have the risk that the user sets") {
  Filter filter = make({.level = Level::l1, .risk = RiskLevel::core});
  CHECK_FALSE(filter.check("own.kernels.mine.0.forward"));
  filter.set_risk("mine", RiskLevel::core);
  filter.set_risk("npu_copy", RiskLevel::all);
  CHECK(filter.check("own.kernels.mine.1.forward"));
  CHECK(filter.check("own.kernels.mine.1.backward"));
  CHECK_FALSE(filter.check("NPU.npu_copy.0.forward"));
  CHECK(filter.check("NPU.npu_other.0.forward"));
}

}  // namespace msprobe::collector_filter_test
