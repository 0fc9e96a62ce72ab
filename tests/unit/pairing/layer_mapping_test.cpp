// SPDX-License-Identifier: Apache-2.0
#include "pairing/layer_mapping.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pairing/matching.hpp"
#include "support/error.hpp"
#include "unit/compare/dumps.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_layer_mapping_test {

using namespace compare;  // helpers of tests

using namespace msprobe;
using namespace msprobe::pairing;

namespace {

/// A side with these entries; places are filled by the test.
struct Model {
  Side side;
  ModelPlaces places;
  std::shared_ptr<dump::ConstructTable> construct = std::make_shared<dump::ConstructTable>();

  explicit Model(const std::vector<std::string>& names, bool mindspore = false) {
    std::string members;
    for (const std::string& name : names) {
      if (!members.empty()) members += ",";
      members += "\"" + name + "\": {\"input\": [null]}";
    }
    side = side_of(members);
    places.mindspore = mindspore;
    places.construct = construct;
  }
  Model& below(const std::string& entry, const std::string& parent) {
    construct->add(entry, parent);
    return *this;
  }
  Model& stack(const std::string& entry, dump::StackTable::Frames frames) {
    places.stacks.add_entry(entry, places.stacks.add_stack(std::move(frames)));
    return *this;
  }
};

LayerMapping rules(std::string_view yaml) {
  return read_layer_mapping(*memory_source(yaml, "map.yaml"));
}

/// The partners' names, "-" for no partner.
std::vector<std::string> partners(const Model& target, const Model& golden,
                                  const LayerMapping& mapping = {}) {
  std::vector<std::string> out;
  for (const std::uint32_t api :
       map_layers(target.side, target.places, golden.side, golden.places, mapping).golden_of)
    out.push_back(api == kUnmatched ? "-" : std::string(golden.side.text(golden.side.apis[api].name)));
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("operations pair by the module around them and their name") {
  Model target({"Functional.abs.0.forward", "Functional.abs.1.forward", "Functional.abs.2.forward"}, true);
  target.below("Functional.abs.0.forward", "Cell.net.a.Block.forward.0");
  target.below("Functional.abs.1.forward", "Cell.net.b.Block.forward.0");
  Model golden({"Torch.abs.0.forward", "Torch.abs.1.forward", "Torch.abs.2.forward"});
  golden.below("Torch.abs.2.forward", "Module.net.a.Block.forward.0");
  golden.below("Torch.abs.1.forward", "Module.net.b.Block.forward.0");
  CHECK(partners(target, golden) ==
        Names{"Torch.abs.2.forward", "Torch.abs.1.forward", "Torch.abs.0.forward"});
}

TEST_CASE("calls at one place pair in order, forward and backward apart") {
  Model target({"T.f.0.forward", "T.f.1.forward", "T.f.1.backward", "T.f.0.backward", "T.f.2.forward"});
  Model golden({"G.f.4.forward", "G.f.5.forward", "G.f.5.backward", "G.f.4.backward"});
  CHECK(partners(target, golden) ==
        Names{"G.f.4.forward", "G.f.5.forward", "G.f.5.backward", "G.f.4.backward", "-"});
}

TEST_CASE("a backward call stands where its forward call does") {
  Model target({"T.f.0.forward", "T.f.0.backward"});
  target.below("T.f.0.forward", "Module.net.a.Block.forward.0");
  Model golden({"G.f.0.forward", "G.f.0.backward"});
  golden.below("G.f.0.forward", "Module.net.a.Block.forward.0");
  golden.below("G.f.0.backward", "Module.net.elsewhere.Block.backward.0");
  CHECK(partners(target, golden) == Names{"G.f.0.forward", "G.f.0.backward"});
}

TEST_CASE("rules name paths below layers of a class, the longest first") {
  const Model target({"Cell.wrap.net.att.Att.forward.0", "Cell.wrap.net.att.core.Core.forward.0",
                      "Cell.wrap.net.att.core.deep.Deep.forward.0", "Cell.wrap.net.Net.forward.0"},
                     true);
  const Model golden({"Module.module.net.self_att.Att.forward.0",
                      "Module.module.net.self_att.middle.core.Core.forward.0",
                      "Module.module.net.self_att.deep2.Deep.forward.0", "Module.module.net.Net.forward.0"});
  CHECK(partners(target, golden,
                 rules("TopLayer:\n  wrap: module\nNet:\n  att: self_att\nAtt:\n  core: middle.core(Core)\n  "
                       "core.deep: deep2\n")) ==
        Names{"Module.module.net.self_att.Att.forward.0",
              "Module.module.net.self_att.middle.core.Core.forward.0",
              "Module.module.net.self_att.deep2.Deep.forward.0", "Module.module.net.Net.forward.0"});
  CHECK(partners(target, golden) == Names{"-", "-", "-", "-"});
}

TEST_CASE("the framework's own function tells operations of one name apart") {
  const std::string user = "File /u/net.py, line 1, in construct, \n b";
  Model target({"T.f.0.forward", "T.f.1.forward", "T.f.2.forward", "Primitive.f.3.forward"}, true);
  target.stack("T.f.0.forward", {"File /x/site-packages/mindspore/nn/a.py, line 1, in inner, \n a",
                                 "File /x/site-packages/mindspore/nn/a.py, line 5, in norm, \n a", user});
  target.stack("T.f.1.forward", {user, "File /x/site-packages/mindspore/nn/a.py, line 5, in norm, \n a"});
  target.stack("T.f.2.forward",
               {"File /x/site-packages/mindspore/msprobe/a.py, line 5, in norm, \n a", user});
  target.stack("Primitive.f.3.forward", {"File /x/site-packages/mindspore/nn/a.py, line 5, in norm, \n a"});
  Model golden({"G.f.0.forward", "G.f.1.forward", "G.f.2.forward", "G.f.3.forward"});
  golden.stack("G.f.3.forward", {"File /x/site-packages/torch/nn/a.py, line 5, in norm, \n a",
                                 "File /u/net.py, line 1, in forward, \n b"});
  CHECK(partners(target, golden) ==
        Names{"G.f.3.forward", "G.f.0.forward", "G.f.1.forward", "G.f.2.forward"});
}

TEST_CASE("layers below a parallel transformer count from its first one") {
  const Model target({"Cell.n.t.layers.4.Lay.forward.0", "Cell.n.t.layers.5.Lay.forward.0",
                      "Cell.n.t.ParallelTransformer.forward.0", "Cell.n.u.layers.4.Lay.forward.0"},
                     true);
  const Model golden({"Module.n.t.layers.0.Lay.forward.0", "Module.n.t.layers.1.Lay.forward.0",
                      "Module.n.t.ParallelTransformer.forward.0", "Module.n.u.layers.0.Lay.forward.0"});
  CHECK(partners(target, golden) == Names{"Module.n.t.layers.0.Lay.forward.0",
                                          "Module.n.t.layers.1.Lay.forward.0",
                                          "Module.n.t.ParallelTransformer.forward.0", "-"});
}

TEST_CASE("parameter gradients stand at their module, in both forms of their names") {
  const Model target({"Cell.n.a.L.parameters_grad.0", "Cell.n.b.L.parameters_grad"}, true);
  const Model golden({"Module.n.x.L.parameters_grad.0", "Module.n.y.L.parameters_grad"});
  const LayerMapping mapping = rules("n:\n  a: x\n  b: y\n");
  CHECK(partners(target, golden, mapping) ==
        Names{"Module.n.x.L.parameters_grad.0", "Module.n.y.L.parameters_grad"});
}

TEST_CASE("names too short or too deep to stand anywhere have no partner") {
  std::string deep = "Module";
  for (int i = 0; i < 300; ++i) deep += ".layers";
  const Model model({"a.forward", deep + ".L.forward.0", "T.f.0.forward"});
  CHECK(partners(model, model) == Names{"-", "-", "T.f.0.forward"});
}

TEST_CASE("construct.json is needed, stack.json is not") {
  const test::ScratchDirectory scratch;
  test::put_file(scratch / "dump.json", R"({"task": "statistics", "framework": "mindspore", "data": {}})");
  Side side = load_side(*open_file(scratch / "dump.json"));
  CHECK_THROWS_WITH_AS(
      read_model_places(side),
      (scratch / "construct.json: not found; --layer_mapping needs it to locate operations in "
                 "the model")
          .c_str(),
      IoError);
  test::put_file(scratch / "construct.json", R"({"T.f.0.forward": "Cell.n.a.L.forward.0"})");
  ModelPlaces places = read_model_places(side);
  CHECK(places.mindspore);
  CHECK(places.construct->size() == 1);
  CHECK(places.stacks.size() == 0);
  test::put_file(scratch / "stack.json", R"({"0": [["T.f.0.forward"], ["File a.py, line 1, in f"]]})");
  CHECK(read_model_places(side).stacks.size() == 1);
  test::put_file(scratch / "construct.json", "{");
  CHECK_THROWS_AS(read_model_places(side), FormatError);
}

}  // namespace msprobe::compare_layer_mapping_test
