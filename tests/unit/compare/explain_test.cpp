// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/story.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/error.hpp"
#include "unit/compare/dumps.hpp"

namespace msprobe::compare_explain_test {

using namespace msprobe;
using namespace msprobe::compare;
using measuring::Mode;
using pairing::default_rules;
using verdict::RankResult;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Seven entries Torch.e0.0.forward and so on, of which the fourth has another output; with stacks.
RankResult seven_entries() {
  std::string target;
  std::string golden;
  for (int i = 0; i < 7; ++i) {
    const std::string name = "Torch.e" + std::to_string(i) + ".0.forward";
    const std::string comma = i == 0 ? "" : ",";
    target += comma + forward_json(name, tensor_json("1"), tensor_json(i == 3 ? "4" : "1"));
    golden += comma + forward_json(name, tensor_json("1"), tensor_json("1"));
  }
  RankResult result = judged(target, golden, Mode::statistics, false);
  result.target.stacks.emplace();
  const std::uint32_t stack = result.target.stacks->add_stack(
      {"File /usr/lib/python3/dist-packages/torch/nn/functional.py, line 7, in linear, \n return x",
       "File /srv/model.py, line 3, in forward, \n y = self.fc(x)"});
  result.target.stacks->add_entry("Torch.e3.0.forward", stack);
  return result;
}

std::string explained(const RankResult& result, std::string_view name) {
  return explain(RankRows::of(result), {.entry = std::string(name)});
}

}  // namespace

TEST_CASE("a call that only golden has is explained beside the target's call of its name") {
  const std::string first = forward_json("Torch.exp.0.forward", tensor_json("1"), tensor_json("2"));
  const std::string kept = forward_json("Torch.add.0.forward", tensor_json("2"), tensor_json("3"));
  const std::string removed = forward_json("Torch.div.0.forward", tensor_json("3", "torch.float32", "[7]"),
                                           tensor_json("4", "torch.float32", "[7]"));
  const auto later = [](int number) {
    return forward_json("Torch.div." + std::to_string(number) + ".forward", tensor_json("5"),
                        tensor_json("6"));
  };
  RankResult result = judged(first + "," + kept + "," + later(0),
                             first + "," + kept + "," + removed + "," + later(1), Mode::statistics, false);
  const pairing::Matching matching = pairing::match(result.target, result.golden, {}, default_rules());
  result.golden_only = matching.golden_only;
  result.alignment = matching.alignment;
  result.rows = matching.pairs;
  result.judgement = verdict::marks_of(result);
  result.judgement = verdict::judge(result, default_rules());
  const std::string text = explained(result, "Torch.div.0.forward");
  CHECK(contains(text, "3 of 3 entries"));
  CHECK(contains(text, "only golden has it, after Torch.add.0.forward"));
}

TEST_CASE("the text about an entry has both sides, messages, stack and neighbours") {
  const std::string text = explained(seven_entries(), "Torch.e3.0.forward");
  CHECK(contains(text, "4 of 7 entries"));
  CHECK(contains(text, "Torch.e3.0.forward.input.0: pass"));
  CHECK(contains(text, "Torch.e3.0.forward.output.0: error"));
  CHECK(contains(text, "error: The NormRelativeErr of output is greater than 0.5."));
  CHECK(contains(text, "torch.float32"));
  CHECK(contains(text, "[2, 3]"));
  CHECK(contains(text, "300.0%"));
  // The user's own frame comes before the frame of the library.
  CHECK(text.find("/srv/model.py, line 3") < text.find("functional.py, line 7"));
  CHECK(contains(text, "y = self.fc(x)"));
  CHECK(contains(text, "Torch.e0.0.forward"));
  CHECK(contains(text, "> error    Torch.e3.0.forward"));
  CHECK(contains(text, "Torch.e6.0.forward"));
}

TEST_CASE("the text about a row has that row alone") {
  const std::string text = explained(seven_entries(), "Torch.e3.0.forward.output.0");
  CHECK(contains(text, "Torch.e3.0.forward.output.0: error"));
  CHECK_FALSE(contains(text, "Torch.e3.0.forward.input.0"));
}

TEST_CASE("entries without a stack and at the edges are explained too") {
  const std::string first = explained(seven_entries(), "Torch.e0.0.forward");
  CHECK(contains(first, "no stack was recorded"));
  CHECK(contains(first, "Torch.e3.0.forward"));
  CHECK_FALSE(contains(first, "Torch.e4.0.forward"));
  CHECK(contains(explained(seven_entries(), "Torch.e6.0.forward"), "7 of 7 entries"));
}

TEST_CASE("what no rank has gets the nearest names") {
  const RankResult result = seven_entries();
  CHECK(explained(result, "Torch.e33.0.forward").empty());
  const std::vector<SimilarName> similar = similar_entries(RankRows::of(result), "Torch.e33.0.forward", 5);
  REQUIRE(similar.size() == 5);
  CHECK(similar[0].name == "Torch.e3.0.forward");
  CHECK(similar[0].distance == 1);
  CHECK(similar_entries(RankRows::of(result), "e5", 1).at(0).name == "Torch.e5.0.forward");
  try {
    const std::unique_ptr<Sink> sink = story_sink({.entry = "x\x1b[2J"});
    TaskPlan plan;
    plan.entries = true;
    plan.tasks.resize(1);
    sink->begin(plan);
    TaskSummary summary;
    sink->take(0, std::make_shared<RankRows>(RankRows::of(result)), summary);
    CompareReport report;
    report.tasks.resize(1);
    sink->end(report);
    FAIL("the entry was found");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()) == "--explain: no entry or row is named 'x\\x1b[2J'");
    CHECK(contains(error.hint(), "Torch.e3.0.forward, "));
  }
}

TEST_CASE("hostile names do not reach the terminal") {
  const std::string name = "Torch.\\u001b[2J\\u202e.0.forward";
  const RankResult result =
      judged(forward_json(name, tensor_json("1"), tensor_json("1")),
             forward_json(name, tensor_json("1"), tensor_json("1")), Mode::statistics, false);
  const std::string text = explained(result, "Torch.\x1b[2J\u202e.0.forward");
  CHECK(contains(text, "Torch.\\x1b[2J"));
  CHECK_FALSE(contains(text, "\x1b"));
  CHECK_FALSE(contains(text, "\u202e"));
}

TEST_CASE("only the framework's own frames are not the user's") {
  const std::vector<std::string> framework = default_rules().framework_frames;
  const auto own = [&](std::string_view frame) { return !dump::is_framework_frame(frame, framework); };
  CHECK(own("File /srv/train/model.py, line 3, in forward"));
  CHECK(own("File /srv/train/my_torch/model.py, line 3, in forward"));
  CHECK(own("File /home/u/torch/train.py, line 3, in forward"));
  // A model in a package is the user's; the place of the package below Python's own folder says nothing.
  CHECK(
      own("File /home/u/.venv/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py, line "
          "3, in f"));
  CHECK(own("File /usr/local/lib/python3.10/dist-packages/megatron/core/transformer/mlp.py, line 3, in f"));
  CHECK(own("File /v/lib/python3.11/site-packages/torchvision/models/resnet.py, line 3, in f"));
  CHECK_FALSE(
      own("File /home/u/.venv/lib/python3.11/site-packages/torch/nn/modules/linear.py, line 3, in f"));
  CHECK_FALSE(own("File /usr/lib/python3/dist-packages/torch_npu/x.py, line 3, in f"));
  CHECK_FALSE(own("File /v/lib/python3.11/site-packages/msprobe/pytorch/hook.py, line 3, in f"));
  CHECK_FALSE(own("File /usr/lib/python3.11/contextlib.py, line 3, in inner"));
  CHECK_FALSE(own("File /src/pytorch/torch/functional.py, line 3, in f"));
  CHECK_FALSE(own("File /opt/mindspore/nn/cell.py, line 3, in construct"));
  CHECK_FALSE(own("File <frozen runpy>, line 3, in run"));
  // The text of the code does not count.
  CHECK(own("File /srv/a.py, line 3, in f, \n path = 'site-packages/torch/x'"));
}

TEST_CASE("the frame that is named is the innermost of the user's, be it in a package") {
  const std::vector<std::string> framework = default_rules().framework_frames;
  CHECK(dump::user_frame({"File /v/site-packages/torch/nn/functional.py, line 1, in linear, \n a",
                          "File /v/site-packages/transformers/modeling.py, line 2, in forward, \n y = fc(x)",
                          "File /v/site-packages/torch/nn/modules/module.py, line 3, in _call_impl, \n b",
                          "File train.py, line 4, in <module>, \n model(x)"},
                         framework) ==
        "/v/site-packages/transformers/modeling.py, line 2, in forward: y = fc(x)");
}

}  // namespace msprobe::compare_explain_test
