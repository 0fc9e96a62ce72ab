// SPDX-License-Identifier: Apache-2.0
#include "pairing/alignment.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "pairing/item_partners.hpp"
#include "unit/diagnosis/dumps.hpp"

namespace msprobe::pairing::alignment_test {

using namespace diagnosis;  // helpers of tests
namespace {

using dump::Side;
using testing::construct_of;
using testing::DumpText;
using testing::named;
using testing::tensor;

std::string name_of(const Side& side, std::uint32_t api) {
  return std::string(side.text(side.apis[api].name));
}

/// Partners by name.
std::map<std::string, std::string> partners(const Side& target, const Side& golden,
                                            const Alignment& alignment) {
  std::map<std::string, std::string> names;
  for (std::uint32_t i = 0; i < target.apis.size(); ++i) {
    const std::uint32_t partner = alignment.golden_of[i];
    names[name_of(target, i)] = partner == kNone ? "" : name_of(golden, partner);
    if (partner != kNone) CHECK(alignment.target_of[partner] == i);
  }
  return names;
}

std::string item_name(const Side& side, std::uint32_t item) {
  return item == kNone ? "" : std::string(side.name(side.items[item]));
}

DumpText& linear(DumpText& text, int call, std::string_view weight = "[64, 64]") {
  return text.forward("Functional.linear." + std::to_string(call) + ".forward",
                      {tensor(1), tensor(1, weight)}, {tensor(1)});
}

DumpText& unary(DumpText& text, std::string_view operation, int call) {
  return text.forward(std::string(operation) + "." + std::to_string(call) + ".forward", {tensor(1)},
                      {tensor(1)});
}

}  // namespace

TEST_CASE("equal sequences are paired one by one") {
  DumpText text;
  linear(text, 0);
  unary(text, "Functional.gelu", 0);
  text.backward("Functional.gelu.0.backward", {tensor(1)}, {tensor(1)});
  text.gradients("Module.fc.Linear.parameters_grad.0", {named("weight", "[" + tensor(1) + "]")});
  const Side target = text.side();
  const Side golden = text.side();
  const Alignment alignment = align(target, golden);
  CHECK(alignment.same_order);
  CHECK_FALSE(alignment.renamed);
  CHECK(alignment.golden_only.empty());
  CHECK(alignment.golden_of == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(alignment.target_of == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("an operation more shifts the names after it, and nothing else") {
  DumpText one;
  linear(one, 0, "[64, 8]");
  linear(one, 1, "[64, 64]");
  unary(one, "Functional.relu", 0);
  one.backward("Functional.linear.1.backward", {tensor(1)}, {tensor(1)});
  DumpText other;
  linear(other, 0, "[64, 8]");
  linear(other, 1, "[8, 64]");
  linear(other, 2, "[64, 64]");
  unary(other, "Functional.relu", 0);
  other.backward("Functional.linear.2.backward", {tensor(1)}, {tensor(1)});
  other.backward("Functional.linear.1.backward", {tensor(1)}, {tensor(1)});
  const Side less = one.side();
  const Side more = other.side();

  const Alignment golden_more = align(less, more);
  auto names = partners(less, more, golden_more);
  CHECK(names["Functional.linear.0.forward"] == "Functional.linear.0.forward");
  CHECK(names["Functional.linear.1.forward"] == "Functional.linear.2.forward");
  CHECK(names["Functional.relu.0.forward"] == "Functional.relu.0.forward");
  CHECK(names["Functional.linear.1.backward"] == "Functional.linear.2.backward");
  CHECK(golden_more.renamed);
  CHECK_FALSE(golden_more.same_order);
  REQUIRE(golden_more.golden_only.size() == 2);
  CHECK(name_of(more, golden_more.golden_only[0].golden) == "Functional.linear.1.forward");
  CHECK(golden_more.golden_only[0].after == 0);
  CHECK(name_of(more, golden_more.golden_only[1].golden) == "Functional.linear.1.backward");
  CHECK(golden_more.golden_only[1].after == 3);

  const Alignment target_more = align(more, less);
  names = partners(more, less, target_more);
  CHECK(names["Functional.linear.1.forward"].empty());
  CHECK(names["Functional.linear.2.forward"] == "Functional.linear.1.forward");
  CHECK(names["Functional.linear.2.backward"] == "Functional.linear.1.backward");
  CHECK(names["Functional.linear.1.backward"].empty());
  CHECK(target_more.golden_only.empty());
}

TEST_CASE("an exchanged operation has no partner, and later calls keep theirs") {
  DumpText one;
  DumpText other;
  for (int layer = 0, silu = 0, gelu = 0; layer < 3; ++layer) {
    linear(one, layer);
    linear(other, layer);
    if (layer == 1) {
      unary(one, "Functional.gelu", gelu++);
    } else {
      unary(one, "Functional.silu", silu++);
    }
    unary(other, "Functional.silu", layer);
  }
  const Side target = one.side();
  const Side golden = other.side();
  const Alignment alignment = align(target, golden);
  auto names = partners(target, golden, alignment);
  CHECK(names["Functional.silu.0.forward"] == "Functional.silu.0.forward");
  CHECK(names["Functional.gelu.0.forward"].empty());
  CHECK(names["Functional.silu.1.forward"] == "Functional.silu.2.forward");
  CHECK(names["Functional.linear.2.forward"] == "Functional.linear.2.forward");
  REQUIRE(alignment.golden_only.size() == 1);
  CHECK(name_of(golden, alignment.golden_only[0].golden) == "Functional.silu.1.forward");
  CHECK(name_of(target, alignment.golden_only[0].after) == "Functional.linear.1.forward");
}

TEST_CASE("other shapes alone leave the order to decide") {
  DumpText one;
  DumpText other;
  for (int call = 0; call < 4; ++call) {
    one.forward("Torch.mul." + std::to_string(call) + ".forward", {tensor(1, "[7]")}, {tensor(1, "[7]")});
    other.forward("Torch.mul." + std::to_string(call) + ".forward", {tensor(1, "[9]")}, {tensor(1, "[9]")});
  }
  const Side target = one.side();
  const Side golden = other.side();
  const Alignment alignment = align(target, golden);
  CHECK(alignment.same_order);
  CHECK_FALSE(alignment.renamed);
}

TEST_CASE("reshapes of whole and of floating numbers, in another order, are not taken for each other") {
  const auto reshape = [](DumpText& text, int call, bool whole) {
    const std::string dtype = whole ? "torch.int64" : "torch.float32";
    const double size = whole ? 1 : 0.3;
    text.forward("Tensor.reshape." + std::to_string(call) + ".forward", {tensor(size, "[4, 2]", dtype)},
                 {tensor(size, "[8]", dtype)});
  };
  DumpText one;
  reshape(one, 0, true);
  reshape(one, 1, false);
  DumpText other;
  reshape(other, 0, false);
  reshape(other, 1, true);
  const Side target = one.side();
  const Side golden = other.side();
  const auto names = partners(target, golden, align(target, golden, nullptr, nullptr));
  CHECK(names.at("Tensor.reshape.0.forward") == "Tensor.reshape.1.forward");
  CHECK(names.at("Tensor.reshape.1.forward") == "Tensor.reshape.0.forward");
}

TEST_CASE("the module around an operation tells equal operations apart") {
  DumpText one;
  linear(one, 0);
  DumpText other;
  linear(other, 0);
  linear(other, 1);
  const auto inside = construct_of({{"Functional.linear.0.forward", "Module.b.Linear.forward.0"}});
  const auto both = construct_of({{"Functional.linear.0.forward", "Module.a.Linear.forward.0"},
                                  {"Functional.linear.1.forward", "Module.b.Linear.forward.0"}});
  const Side target = one.side();
  const Side golden = other.side();
  const Alignment alignment = align(target, golden, &inside, &both);
  CHECK(partners(target, golden, alignment)["Functional.linear.0.forward"] == "Functional.linear.1.forward");
  CHECK(alignment.renamed);
  // One table alone says nothing that can be compared with the other side.
  CHECK_FALSE(align(target, golden, &inside, nullptr).renamed);
}

TEST_CASE("a recording that was cut within a module pairs calls there, not one behind the module") {
  DumpText one;
  DumpText other;
  for (const int call : {0, 1}) unary(one, "Torch.exp", call);
  for (const int call : {0, 1, 2}) unary(other, "Torch.exp", call);
  other.forward("Torch.exp.3.forward", {tensor(1, "[3]")}, {tensor(1, "[3]")});
  const Side target = one.side();
  const Side golden = other.side();
  // The module ends behind the cut, so that it is in no file of the target.
  const auto cut = construct_of({{"Functional.linear.0.forward", "Module.a.Linear.forward.0"}});
  const auto whole = construct_of({{"Torch.exp.0.forward", "Module.scan.Scan.forward.0"},
                                   {"Torch.exp.1.forward", "Module.scan.Scan.forward.0"},
                                   {"Torch.exp.2.forward", "Module.scan.Scan.forward.0"}});
  CHECK(align(target, golden, &cut, &whole).golden_of == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("wrappers of parallel and compiled models do not part modules") {
  DumpText one;
  one.forward("Module.module.layers.0.fc.Linear.forward.0", {tensor(1)}, {tensor(1)});
  one.forward("Module.module._orig_mod.layers.1.fc.Linear.forward.0", {tensor(1)}, {tensor(1)});
  one.forward("Module.module.Model.forward.0", {tensor(1)}, {tensor(1)});
  one.backward("Module.module.layers.0.fc.Linear.backward.0", {tensor(1)}, {tensor(1)});
  one.gradients("Module.module.layers.0.fc.Linear.parameters_grad.0",
                {named("weight", "[" + tensor(1) + "]")});
  DumpText other;
  other.forward("Module.layers.1.fc.Linear.forward.0", {tensor(1)}, {tensor(1)});
  other.forward("Module.layers.0.fc.Linear.forward.0", {tensor(1)}, {tensor(1)});
  other.forward("Module.layers.1.fc.Linear.forward.1", {tensor(1)}, {tensor(1)});
  other.backward("Module.layers.0.fc.Linear.backward.0", {tensor(1)}, {tensor(1)});
  other.gradients("Module.layers.0.fc.Linear.parameters_grad.0", {named("weight", "[" + tensor(1) + "]")});
  const Side target = one.side();
  const Side golden = other.side();
  auto names = partners(target, golden, align(target, golden));
  CHECK(names["Module.module.layers.0.fc.Linear.forward.0"] == "Module.layers.0.fc.Linear.forward.0");
  CHECK(names["Module.module._orig_mod.layers.1.fc.Linear.forward.0"] ==
        "Module.layers.1.fc.Linear.forward.1");
  CHECK(names["Module.module.Model.forward.0"].empty());
  CHECK(names["Module.module.layers.0.fc.Linear.backward.0"] == "Module.layers.0.fc.Linear.backward.0");
  CHECK(names["Module.module.layers.0.fc.Linear.parameters_grad.0"] ==
        "Module.layers.0.fc.Linear.parameters_grad.0");
}

TEST_CASE("modules called in another order are paired all the same") {
  DumpText one;
  one.forward("Module.a.Linear.forward.0", {tensor(1)}, {tensor(1)});
  one.forward("Module.b.Linear.forward.0", {tensor(1)}, {tensor(1)});
  DumpText other;
  other.forward("Module.b.Linear.forward.0", {tensor(1)}, {tensor(1)});
  other.forward("Module.a.Linear.forward.0", {tensor(1)}, {tensor(1)});
  const Side target = one.side();
  const Side golden = other.side();
  const Alignment alignment = align(target, golden);
  CHECK(partners(target, golden, alignment)["Module.a.Linear.forward.0"] == "Module.a.Linear.forward.0");
  CHECK(partners(target, golden, alignment)["Module.b.Linear.forward.0"] == "Module.b.Linear.forward.0");
  CHECK_FALSE(alignment.same_order);
  CHECK_FALSE(alignment.renamed);
}

TEST_CASE("two heads that are called in another order, layer by layer, keep their calls") {
  const auto heads = [](bool box_first) {
    DumpText text;
    for (const int layer : {0, 1}) {
      const std::string call = std::to_string(layer);
      for (const bool box : {box_first, !box_first})
        text.forward((box ? "Module.box.Linear.forward." : "Module.label.Linear.forward.") + call,
                     {tensor(1 + layer)}, {tensor(box ? 5 + layer : 8 + layer)});
    }
    return text.side();
  };
  const Side target = heads(true);
  const Side golden = heads(false);
  for (const auto& [ours, theirs] : partners(target, golden, align(target, golden))) CHECK(ours == theirs);
}

TEST_CASE("a model that one run evaluates first is paired where it is trained") {
  const auto run = [](bool evaluates) {
    DumpText text;
    const int first = evaluates ? 0 : 1;
    for (int pass = first; pass < 2; ++pass) {
      const std::string call = '.' + std::to_string(pass - first);
      const double size = pass == 0 ? 1.3 : 1;  // of other data
      const std::string mask =
          R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": [4, 64], "Max": true, "Min": false,
          "Mean": null, "Norm": null})";
      text.forward("Module.a.Linear.forward" + call, {tensor(size), mask}, {tensor(2 * size)});
      text.forward("Module.b.Linear.forward" + call, {tensor(2 * size)}, {tensor(3 * size)});
    }
    return text.side();
  };
  const Side target = run(true);
  const Side golden = run(false);
  auto names = partners(target, golden, align(target, golden));
  for (const std::string module : {"Module.a.Linear.forward.", "Module.b.Linear.forward."}) {
    CHECK(names[module + "1"] == module + "0");
    CHECK(names[module + "0"].empty());
  }
}

TEST_CASE("the norms of a list of gradients follow the gradients") {
  const auto run = [](const std::vector<double>& order) {
    DumpText text;
    for (const double size : {2.0, 3.0, 5.0})
      text.gradients("Module.m" + std::to_string(static_cast<int>(size)) + ".Linear.parameters_grad.0",
                     {named("weight", "[" + tensor(size) + "]")});
    std::string list;
    testing::Texts norms;
    for (const double size : order) {
      list += (list.empty() ? "" : ", ") + tensor(size);
      norms.push_back(tensor(16 * size, "[]"));
    }
    text.forward("Torch._foreach_norm.0.forward", {'[' + list + ']'}, norms);
    return text.side();
  };
  const Side target = run({2, 3, 5});
  const Side golden = run({5, 2, 3});
  const Alignment alignment = align(target, golden);
  for (const std::uint32_t i : target.apis.back().items()) {
    const std::uint32_t partner = alignment.golden_item_of[i];
    REQUIRE(partner != kNone);
    CHECK(target.items[i].state == golden.items[partner].state);
    CHECK(dump::classify(target.items[i].statistics[dump::kNorm], target.pool).number ==
          dump::classify(golden.items[partner].statistics[dump::kNorm], golden.pool).number);
  }
}

TEST_CASE("gradients after a pass that only one side runs are paired by what they are") {
  // Golden lets the gradient of the generator's loss pass through the critic, after the critic's own step.
  const auto run = [](bool passes_through) {
    DumpText text;
    text.forward("Module.critic.Linear.forward.0", {tensor(1)}, {tensor(2)});
    text.gradients("Module.critic.Linear.parameters_grad.0", {named("weight", "[" + tensor(3) + "]")});
    if (passes_through)
      text.gradients("Module.critic.Linear.parameters_grad.1", {named("weight", "[" + tensor(7) + "]")});
    return text.side();
  };
  const Side target = run(false);
  const Side golden = run(true);
  const Alignment alignment = align(target, golden);
  CHECK(partners(target, golden, alignment)["Module.critic.Linear.parameters_grad.0"] ==
        "Module.critic.Linear.parameters_grad.0");
  CHECK(alignment.golden_earlier_pass == std::vector<bool>{false, false, true});
}

TEST_CASE("a forward that only one side computes again leaves the backward entries paired") {
  DumpText one;
  linear(one, 0);
  linear(one, 1);
  one.backward("Functional.linear.1.backward", {tensor(1)}, {tensor(1)});
  DumpText other;
  linear(other, 0);
  other.backward("Functional.linear.0.backward", {tensor(1)}, {tensor(1)});
  const Side target = one.side();
  const Side golden = other.side();
  CHECK(partners(target, golden, align(target, golden))["Functional.linear.1.backward"] ==
        "Functional.linear.0.backward");
}

TEST_CASE("what is computed again in one module is not a call of another") {
  DumpText one;
  DumpText other;
  for (DumpText* side : {&one, &other}) {
    for (const int call : {0, 1}) linear(*side, call);
    unary(*side, "Torch.exp", 0);
    side->backward("Torch.exp.0.backward", {tensor(1)}, {tensor(1)});
    linear(*side, 2);
  }
  unary(other, "Torch.sin", 0);
  const std::string a = "Module.a.Linear.forward.0";
  const std::string b = "Module.b.Linear.forward.0";
  const auto ours = construct_of({{"Functional.linear.0.forward", a},
                                  {"Functional.linear.1.forward", b},
                                  {"Functional.linear.2.forward", a}});
  const auto theirs = construct_of({{"Functional.linear.0.forward", a},
                                    {"Functional.linear.1.forward", b},
                                    {"Functional.linear.2.forward", b}});
  const Side target = one.side();
  const Side golden = other.side();
  const auto names = partners(target, golden, align(target, golden, &ours, &theirs));
  CHECK(names.at("Functional.linear.1.forward") == "Functional.linear.1.forward");
  CHECK(names.at("Functional.linear.2.forward").empty());
}

TEST_CASE("one side empty") {
  DumpText text;
  linear(text, 0);
  const Side something = text.side();
  const Side nothing = DumpText().side();
  const Alignment all_golden = align(nothing, something);
  REQUIRE(all_golden.golden_only.size() == 1);
  CHECK(all_golden.golden_only[0].after == kNone);
  const Alignment all_target = align(something, nothing);
  CHECK(all_target.golden_of == std::vector<std::uint32_t>{kNone});
  CHECK(pair_items(something, nothing, all_target) == std::vector<std::uint32_t>(3, kNone));
}

TEST_CASE("items are paired by their place in the entry") {
  DumpText one;
  one.forward("Torch.add.0.forward", {tensor(1), tensor(2)}, {tensor(3)}, {named("alpha", tensor(4))});
  DumpText other;
  other.forward("Torch.add.0.forward", {tensor(1)}, {tensor(3), tensor(5)}, {named("alpha", tensor(4))});
  const Side target = one.side();
  const Side golden = other.side();
  const auto items = align(target, golden).golden_item_of;
  std::map<std::string, std::string> names;
  for (std::uint32_t i = 0; i < items.size(); ++i) names[item_name(target, i)] = item_name(golden, items[i]);
  CHECK(names["Torch.add.0.forward.input.0"] == "Torch.add.0.forward.input.0");
  CHECK(names["Torch.add.0.forward.input.1"].empty());
  CHECK(names["Torch.add.0.forward.input.alpha"] == "Torch.add.0.forward.input.alpha");
  CHECK(names["Torch.add.0.forward.output.0"] == "Torch.add.0.forward.output.0");
}

TEST_CASE("a keyword argument with a data file is the one without") {
  DumpText one;
  one.forward("Torch.sum.0.forward", {tensor(1)}, {tensor(3)},
              {named("other", tensor(1, "[2]", "torch.float32",
                                     R"(, "data_name": "Torch.sum.0.forward.kwargs.other.pt")"))});
  DumpText other;
  other.forward("Torch.sum.0.forward", {tensor(1)}, {tensor(3)}, {named("other", tensor(1, "[2]"))});
  const Side target = one.side();
  const Side golden = other.side();
  const auto items = align(target, golden).golden_item_of;
  CHECK(items == std::vector<std::uint32_t>{0, 1, 2});
}

TEST_CASE("items follow entries of other names") {
  DumpText one;
  unary(one, "Torch.exp", 3);
  DumpText other;
  unary(other, "Torch.exp", 0);
  const Side target = one.side();
  const Side golden = other.side();
  CHECK(align(target, golden).golden_item_of == std::vector<std::uint32_t>{0, 1});
}

}  // namespace msprobe::pairing::alignment_test
