// SPDX-License-Identifier: Apache-2.0
// Calls of an optimizer pair by the parameter that they are about.
#include "pairing/updates.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pairing/alignment.hpp"
#include "unit/diagnosis/dumps.hpp"

namespace msprobe::pairing::updates_test {
namespace {

using diagnosis::testing::DumpText;
using diagnosis::testing::named;
using diagnosis::testing::tensor;
using diagnosis::testing::Texts;
using dump::Side;

/// A parameter, and what its values, gradients and first moments are scaled by.
using Parameter = std::pair<std::string, double>;

/// Modules with a parameter each, and an optimizer that goes through them in the order of `updated`; it calls
/// each of its functions once a parameter.
DumpText training(const std::vector<Parameter>& modules, const std::vector<Parameter>& updated) {
  DumpText text;
  for (const auto& [name, size] : modules) {
    text.forward("Module." + name + ".Linear.forward.0", {tensor(1)}, {tensor(1)}, {},
                 {named("weight", tensor(size, "[8, 8]"))});
    text.gradients("Module." + name + ".Linear.parameters_grad.0",
                   {named("weight", "[" + tensor(size / 7, "[8, 8]") + "]")});
  }
  int call = 0;
  for (const auto& [name, size] : updated) {
    const std::string number = std::to_string(call++);
    text.forward("Tensor.lerp_." + number + ".forward",
                 {tensor(size / 100, "[8, 8]"), tensor(size / 7, "[8, 8]")}, {tensor(size / 50, "[8, 8]")});
    // It takes the moment that was changed, and a parameter that decay has changed: by flow it is the same
    // one.
    text.forward("Tensor.addcdiv_." + number + ".forward",
                 {tensor(size * 0.99, "[8, 8]"), tensor(size / 50, "[8, 8]")},
                 {tensor(size * 0.98, "[8, 8]")});
  }
  return text;
}

dump::ConstructTable construct(std::size_t calls) {
  dump::ConstructTable table;
  for (std::size_t i = 0; i < calls; ++i) {
    table.add("Tensor.lerp_." + std::to_string(i) + ".forward", "optimizer");
    table.add("Tensor.addcdiv_." + std::to_string(i) + ".forward", "optimizer");
  }
  return table;
}

/// The optimizer's calls of the target and their partners.
std::map<std::string, std::string> partners(const Side& target, const Side& golden) {
  const auto ours = construct(4);
  const Alignment alignment = align(target, golden, &ours, &ours);
  std::map<std::string, std::string> names;
  for (std::uint32_t i = 0; i < target.apis.size(); ++i) {
    const std::string name(target.text(target.apis[i].name));
    if (!name.starts_with("Tensor.")) continue;
    const std::uint32_t partner = alignment.golden_of[i];
    names[name] = partner == kNone ? "" : std::string(golden.text(golden.apis[partner].name));
  }
  return names;
}

const Parameter kA = {"a", 1};
const Parameter kB = {"b", 2.3};
const Parameter kC = {"c", 3.7};

}  // namespace

TEST_CASE("one call may update all parameters") {
  const Side golden = training({kA, kB, kC}, {kA, kB, kC}).side();
  DumpText fused = training({kA, kB, kC}, {});
  fused.forward(
      "Torch._fused_adamw_.0.forward",
      {"[" + tensor(1, "[8, 8]") + ", " + tensor(2.3, "[8, 8]") + ", " + tensor(3.7, "[8, 8]") + "]"}, {});
  dump::ConstructTable ours;
  ours.add("Torch._fused_adamw_.0.forward", "optimizer");
  const auto theirs = construct(3);
  const auto pairs = pair_updates(fused.side(), ours, golden, theirs);
  REQUIRE(pairs);
  CHECK(std::find(pairs->golden_alone.begin(), pairs->golden_alone.end(), true) == pairs->golden_alone.end());
}

TEST_CASE("parameters in another order") {
  const Side target = training({kA, kB, kC}, {kC, kA, kB}).side();
  const Side golden = training({kA, kB, kC}, {kA, kB, kC}).side();
  const auto pairs = partners(target, golden);
  CHECK(pairs.at("Tensor.lerp_.0.forward") == "Tensor.lerp_.2.forward");
  CHECK(pairs.at("Tensor.addcdiv_.0.forward") == "Tensor.addcdiv_.2.forward");
  CHECK(pairs.at("Tensor.lerp_.1.forward") == "Tensor.lerp_.0.forward");
  CHECK(pairs.at("Tensor.addcdiv_.2.forward") == "Tensor.addcdiv_.1.forward");
}

TEST_CASE("calls that nothing names have no known partner in another order") {
  // The optimizer takes a gradient that was clipped, so that no name leads to the first moments.
  const auto clipped = [](const std::vector<Parameter>& order, double size) {
    DumpText text = training({kA, kB}, order);
    text.forward("Tensor.lerp_.2.forward", {tensor(70, "[8, 8]"), tensor(size, "[8, 8]")},
                 {tensor(size + 1, "[8, 8]")});
    text.forward("Tensor.lerp_.3.forward", {tensor(70, "[8, 8]"), tensor(size + 2, "[8, 8]")},
                 {tensor(size + 3, "[8, 8]")});
    return text.side();
  };
  const auto table = construct(4);
  const auto alone_in = [&](const std::vector<Parameter>& order) {
    const auto pairs = pair_updates(clipped(order, 71), table, clipped({kA, kB}, 81), table);
    return pairs ? std::count(pairs->target_alone.begin(), pairs->target_alone.end(), true) : 0;
  };
  CHECK(alone_in({kB, kA}) == 2);
  CHECK(alone_in({kA, kB}) == 0);
}

TEST_CASE("a parameter that the other side has not") {
  const Side target = training({kA, kB, kC}, {kA, kB, kC}).side();
  const Side golden = training({kA, kC}, {kA, kC}).side();
  const auto pairs = partners(target, golden);
  CHECK(pairs.at("Tensor.lerp_.0.forward") == "Tensor.lerp_.0.forward");
  CHECK(pairs.at("Tensor.lerp_.1.forward").empty());
  CHECK(pairs.at("Tensor.addcdiv_.1.forward").empty());
  CHECK(pairs.at("Tensor.addcdiv_.2.forward") == "Tensor.addcdiv_.1.forward");
  const auto table = construct(3);
  CHECK(align(target, golden, &table, &table).is_update_alone(8));  // lerp_.1, behind six entries of modules
}

TEST_CASE("parameters that are not known leave the order as it is") {
  // The golden run calls functions in place of the modules b and c.
  const Side target = training({kA, kB, kC}, {kA, kB, kC}).side();
  const Side golden = training({kA}, {kA, kB, kC}).side();
  for (const auto& [ours, theirs] : partners(target, golden)) CHECK(ours == theirs);
}

TEST_CASE("a call that one side leaves out is not about another parameter") {
  // Nobody knows what the last two calls of the target are about, and its modules are golden's.
  DumpText more = training({kA, kB}, {kA, kB});
  more.forward("Tensor.lerp_.2.forward", {tensor(70, "[8, 8]"), tensor(71, "[8, 8]")},
               {tensor(72, "[8, 8]")});
  const Side target = more.side();
  const Side golden = training({kA, kB}, {kB, kA}).side();
  const auto table = construct(3);
  const Alignment alignment = align(target, golden, &table, &table);
  for (std::uint32_t i = 0; i < target.apis.size(); ++i) CHECK_FALSE(alignment.is_update_alone(i));
}

TEST_CASE("parameters that are laid together on one side") {
  // The golden run has one parameter in place of b and c, of a module that is not recorded.
  const Side target = training({kA, kB, kC}, {kA, kB, kC}).side();
  const Side golden = training({kA}, {kA, {"bc", 5}}).side();
  const auto pairs = partners(target, golden);
  CHECK(pairs.at("Tensor.lerp_.0.forward") == "Tensor.lerp_.0.forward");
  for (const char* call : {"Tensor.lerp_.1.forward", "Tensor.addcdiv_.1.forward", "Tensor.lerp_.2.forward"})
    CHECK(pairs.at(call).empty());
}

TEST_CASE("calls on constants, where the sides update different parameters") {
  const auto run = [](const std::vector<Parameter>& parameters, std::string_view factor) {
    DumpText text = training(parameters, parameters);
    const std::string ones =
        R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [8], "Max": 1, "Min": 1, "Mean": 1, "Norm": 2.8})";
    text.forward("Tensor.mul_.0.forward", {ones, diagnosis::testing::scalar("float", factor)}, {ones});
    return text.side();
  };
  dump::ConstructTable table = construct(2);
  table.add("Tensor.mul_.0.forward", "optimizer");
  const auto is_paired = [&](const Side& target, const Side& golden) {
    const Alignment alignment = align(target, golden, &table, &table);
    const auto last = static_cast<std::uint32_t>(target.apis.size() - 1);
    CHECK(alignment.has_golden(last) != alignment.is_update_alone(last));
    return alignment.has_golden(last);
  };
  CHECK(is_paired(run({kA, kB}, "0.999"), run({kA, kB}, "0.99")));
  CHECK_FALSE(is_paired(run({kA, {"joined", 17}}, "0.999"), run({kA, kB}, "0.99")));
}

TEST_CASE("lists of parameters") {
  const auto lists = [](const std::vector<Parameter>& order) {
    DumpText text = training({kA, kB}, {});
    Texts parameters;
    Texts gradients;
    Texts moments;
    for (const auto& [name, size] : order) {
      parameters.push_back(tensor(size, "[8, 8]"));
      gradients.push_back(tensor(size / 7, "[8, 8]"));
      moments.push_back(tensor(size / 100, "[8, 8]"));
    }
    text.forward("Torch._fused_adamw_.0.forward",
                 {"[" + diagnosis::testing::list_of(parameters) + "]",
                  "[" + diagnosis::testing::list_of(gradients) + "]",
                  "[" + diagnosis::testing::list_of(moments) + "]"},
                 {});
    return text.side();
  };
  const Side target = lists({kB, kA});
  const Side golden = lists({kA, kB});
  const auto items = align(target, golden).golden_item_of;
  std::map<std::string, std::string> pairs;
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    if (items[i] != kNone)
      pairs[std::string(target.name(target.items[i]))] = golden.name(golden.items[items[i]]);
  }
  CHECK(pairs.at("Torch._fused_adamw_.0.forward.input.0.0") == "Torch._fused_adamw_.0.forward.input.0.1");
  CHECK(pairs.at("Torch._fused_adamw_.0.forward.input.1.1") == "Torch._fused_adamw_.0.forward.input.1.0");
  CHECK(pairs.at("Torch._fused_adamw_.0.forward.input.2.0") == "Torch._fused_adamw_.0.forward.input.2.1");
}

}  // namespace msprobe::pairing::updates_test
