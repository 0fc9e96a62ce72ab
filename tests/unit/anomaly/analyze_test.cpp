// SPDX-License-Identifier: Apache-2.0
#include "anomaly/analyze.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "anomaly/input.hpp"
#include "anomaly/result.hpp"
#include "anomaly/summary.hpp"
#include "dump/stack_json.hpp"
#include "dumps.hpp"
#include "support/error.hpp"
#include "unit/dump/entry_text.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::anomaly_analyze_test {

namespace fs = std::filesystem;
using namespace msprobe;
using namespace msprobe::anomaly;

namespace {

class Scratch : public test::ScratchDirectory {
 public:
  void rank(const std::string& folder, const std::vector<std::string>& entries) const {
    put(folder + "/dump.json", dump_of(entries));
    put(folder + "/construct.json", "{}");
    put(folder + "/stack.json", "{}");
  }
};

std::vector<std::int64_t> numbers(const StepInput& step) {
  std::vector<std::int64_t> list;
  for (const RankInput& rank : step.ranks) list.push_back(rank.number);
  return list;
}

Analysis run(const std::string& input) {
  AnalyzeOptions options;
  options.input = input;
  return analyze(options, default_rules(), nullptr, [](Remark, const std::string&) {});
}

using Numbers = std::vector<std::int64_t>;
const std::string kFault = entry("Torch.log.0.forward", "c", "n");
const std::string kClean = entry("Torch.add.0.forward", "c", "c");

}  // namespace

TEST_CASE("the ranks of a step, whatever their folders are called") {
  Scratch scratch;
  for (const char* name : {"s/rank10", "s/rank2", "s/rank007", "s/rank", "s/rank_x", "s/proc1", "s/other"})
    scratch.rank(name, {});
  CHECK(numbers(resolve_input(scratch / "s/")[0]) == Numbers{0, 2, 7, 10});
  scratch.rank("p/proc77", {});
  fs::create_directories(scratch / "p/notes");
  CHECK(numbers(resolve_input(scratch / "p")[0]) == Numbers{0});
  scratch.rank("p/proc78", {});
  CHECK_THROWS_WITH_AS(resolve_input(scratch / "p"), doctest::Contains("several proc folders"), FormatError);
  scratch.rank("s/rank0010", {});
  CHECK_THROWS_WITH_AS(resolve_input(scratch / "s"), doctest::Contains("two folders for the same rank"),
                       FormatError);
}

TEST_CASE("steps of a dump, a rank alone, a file alone, and what is no dump") {
  Scratch scratch;
  scratch.rank("d/step10/rank3", {});
  scratch.rank("d/step9/rank3", {});
  fs::create_directories(scratch / "d/step1");
  const auto steps = resolve_input(scratch / "d");
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].label == "step9");
  CHECK(steps[1].label == "step10");
  CHECK(numbers(resolve_input(scratch / "d/step9/rank3")[0]) == Numbers{3});
  CHECK(numbers(resolve_input(scratch / "d/step9/rank3/dump.json")[0]) == Numbers{3});
  CHECK_THROWS_WITH_AS(resolve_input(scratch / "missing"), doctest::Contains("missing"), IoError);
  CHECK_THROWS_WITH_AS(resolve_input(scratch / "d/step1"), doctest::Contains("no dump here"), FormatError);
}

TEST_CASE("of several steps the first with an anomaly is analysed") {
  Scratch scratch;
  scratch.rank("d/step0/rank0", {kClean});
  scratch.rank("d/step2/rank0", {kClean, kFault});
  scratch.rank("d/step10/rank0", {kFault});
  const Analysis analysis = run(scratch / "d");
  CHECK(analysis.step == "step2");
  CHECK(told(analysis.ranks, analysis.roots) == "0 Torch.log.0.forward");
  CHECK_FALSE(analysis.failed);
}

TEST_CASE("task nan_check: what the device raised is an anomaly; a warning counts unknown entries") {
  Scratch scratch;
  const auto noted = [](const std::string& name, const std::string& is_nan) {
    return "\"Torch." + name + R"(.0.forward": {"is_nan": )" + is_nan +
           R"(, "input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2]}]})";
  };
  const auto rank = [&](const std::string& folder, const std::string& entries) {
    scratch.put(folder + "/dump.json", R"({"task": "nan_check", "data": {)" + entries + "}}");
  };
  rank("s/rank0", noted("add", "0") + ", " + noted("log", "1") + ", " + noted("mul", "12"));
  rank("s/rank1", noted("add", "0.0") + ", " + noted("mul", "null"));
  std::vector<std::string> warnings;
  const auto look = [&](AnalyzeOptions options) {
    options.input = scratch / "s";
    warnings.clear();
    return analyze(options, default_rules(), nullptr, [&](Remark kind, const std::string& text) {
      if (kind == Remark::warning && text.starts_with("rank ")) warnings.push_back(text);
    });
  };
  const Analysis analysis = look({});
  CHECK(told(analysis.ranks, analysis.roots) == "0 Torch.log.0.forward");
  CHECK(analysis.anomaly());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "rank 1: for 1 of 2 entries the dump does not record whether they raised NaN or Inf (is_nan)");
  const std::string answer = render_answer(analysis, default_rules(), {});
  CHECK(answer.find("raised NaN or Inf on the device") != std::string::npos);
  CHECK(answer.find("2 of 3 entries of rank 0 raised NaN or Inf") != std::string::npos);

  AnalyzeOptions all;
  all.all = true;
  CHECK(told(analysis.ranks, look(all).roots) == "0 Torch.log.0.forward");
  AnalyzeOptions levels;
  levels.listing = anomaly::AnomalyListing::levels;
  CHECK_FALSE(look(levels).anomaly());
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0].find("task nan_check, which has no values to list by") != std::string::npos);
}

TEST_CASE("a rank that cannot be read is left out and told; all of them are an error") {
  Scratch scratch;
  scratch.rank("s/rank0", {kClean});
  scratch.rank("s/rank1", {kFault});
  scratch.put("s/rank2/dump.json", "{\"data\": {\"a\"");
  fs::create_directories(scratch / "s/rank3");
  const Analysis analysis = run(scratch / "s");
  CHECK(told(analysis.ranks, analysis.roots) == "1 Torch.log.0.forward");
  CHECK(analysis.failed);
  CHECK(analysis.ranks[2].failure.find("rank2/dump.json") != std::string::npos);
  CHECK(analysis.ranks[3].failure.find("rank3/dump.json") != std::string::npos);
  scratch.put("t/rank0/dump.json", "x");
  CHECK_THROWS_AS(run(scratch / "t"), FormatError);
  scratch.put("t/rank1/dump.json", "y");
  CHECK_THROWS_AS(run(scratch / "t"), FormatError);
}

TEST_CASE("missing or broken construct.json and stack.json leave their fields empty") {
  Scratch scratch;
  scratch.put("s/rank0/dump.json", dump_of({kFault}));
  Analysis analysis = run(scratch / "s");
  REQUIRE(analysis.details.size() == 1);
  CHECK(analysis.details[0].construct.empty());
  CHECK(roots_json(analysis).find("\"construct_info\": [],\n      \"stack_info\": {}") != std::string::npos);
  CHECK_FALSE(analysis.failed);
  scratch.put("s/rank0/construct.json", "[1");
  scratch.put("s/rank0/stack.json", R"({"0": [["Torch.log.0.forward"], ["File a.py, line 1, in f, \n g"]]})");
  analysis = run(scratch / "s");
  CHECK(analysis.details[0].construct.empty());
  CHECK(analysis.details[0].frames == std::vector<std::string>{"File a.py, line 1, in f, \n g"});
}

TEST_CASE("stack.json of either layout, and one without stacks") {
  Scratch scratch;
  scratch.rank("s/rank0", {kFault});
  const auto frames = [&](const std::string& text) {
    scratch.put("s/rank0/stack.json", text);
    return run(scratch / "s").details.at(0).frames;
  };
  const std::vector<std::string> two{"f", "g"};
  CHECK(frames(R"({"0": [["Torch.log.0.forward"], ["f", "g"]]})") == two);
  CHECK(frames(R"({"Torch.log.0.forward": ["f", "g"]})") == two);
  CHECK(frames(R"({"0": "text"})").empty());
}

TEST_CASE("a backward entry is explained by the call that it belongs to") {
  Scratch scratch;
  scratch.put("s/rank0/dump.json", dump_of({R"("Functional.linear.0.backward": {"input": )" + tensors("c") +
                                            R"(, "output": )" + tensors("n") + "}"}));
  scratch.put("s/rank0/stack.json",
              R"({"0": [["Functional.linear.0.forward"], ["File a.py, line 1, in f, \n g"]]})");
  const Analysis analysis = run(scratch / "s");
  const std::string json = roots_json(analysis);
  CHECK(json.find("\"input\": [") != std::string::npos);
  CHECK(json.find("input_args") == std::string::npos);
  CHECK(json.find("\"stack_info\": {}") != std::string::npos);
  CHECK(render_answer(analysis, default_rules(), {}).find("a.py, line 1, in f: g  (its forward call)") !=
        std::string::npos);
}

TEST_CASE("the answer for people") {
  Scratch scratch;
  scratch.put("s/rank0/dump.json",
              dump_of({R"("Module.fc.Linear.forward.0": {"input_args": )" + tensors("c") +
                       R"(, "input_kwargs": {"scale": )" + integer(2) + R"(}, "output": )" + tensors("n") +
                       R"(, "parameters": {"weight": )" + tensor_json('n') + "}}"}));
  scratch.put("s/rank0/construct.json", R"({"Module.fc.Linear.forward.0": "Module.net.Net.forward.0"})");
  scratch.put(
      "s/rank0/stack.json",
      R"({"0": [["Module.fc.Linear.forward.0"], ["File /x/site-packages/torch/nn/m.py, line 9, in call, \n y",
                 "File /home/u/train.py, line 12, in step, \n z = fc_x"]]})");
  CHECK(render_answer(run(scratch / "s"), default_rules(), {}) ==
        "rank 0: Module.fc.Linear.forward.0 produced NaN from clean inputs, before communication\n"
        "  input     float32[2] min -1.0 max 1.0; scale=2\n"
        "  output    float32[2] min nan max nan\n"
        "  parameter weight: already bad; the fault is earlier (the optimizer's step?)\n"
        "  module    Module.net.Net.forward.0\n"
        "  at        /home/u/train.py, line 12, in step: z = fc_x\n"
        "  spread    1 of 1 entries of rank 0 hold NaN or Inf\n");
}

TEST_CASE("gradients that overflow because the loss is scaled") {
  const auto anomaly = [](const std::string& training, bool half = true, const char* in = "i",
                          const char* first = "i") {
    const Scratch scratch;
    std::string text =
        dump_of({entry("Torch.exp.0.forward", "c", "c"), entry("Torch.exp.0.backward", in, first),
                 entry("Torch.sub.0.backward", first, "n")});
    for (std::size_t at = 0; half && (at = text.find("float32", at)) != std::string::npos;)
      text.replace(at, 7, "float16");
    for (std::size_t at = 0; (at = text.find("input_args", at)) != std::string::npos;)
      text.replace(at, 10, "input");  // as a backward has it
    text.insert(text.size() - 1, R"(, "training": )" + training);
    scratch.put("rank0/dump.json", text);
    return run(scratch / "rank0").anomaly();
  };
  CHECK_FALSE(anomaly(R"({"loss_scale": {"scale": 1024.0, "skipped": true}})"));
  CHECK(anomaly(R"({"loss_scale": {"scale": 1.0, "skipped": true}})"));  // nothing is left to lower
  CHECK(anomaly(R"({"loss_scale": {"scale": 1024.0, "skipped": false}})"));
  // float32 does not overflow so, and an overflow is no NaN.
  CHECK(anomaly(R"({"loss_scale": {"scale": 1024.0, "skipped": true}})", false));
  CHECK(anomaly(R"({"loss_scale": {"scale": 1024.0, "skipped": true}})", true, "c", "n"));
  CHECK(
      anomaly(R"({"loss_scale": {"scale": 1024.0, "skipped": true}})", true, "c", "i"));  // of small numbers
  CHECK(anomaly("{}"));
}

TEST_CASE("-inf that ends harms nothing, other infinities may") {
  const auto told = [](const std::string& text) {
    const Scratch scratch;
    scratch.put("rank0/dump.json", text);
    return run(scratch / "rank0");
  };
  const std::string mask = dump_of({entry("Tensor.masked_fill.0.forward", "c", "i"),
                                    entry("Functional.softmax.0.forward", "i", "c"),
                                    entry("Functional.linear.0.forward", "c", "c")});
  std::string minus = mask;
  const std::string plus = R"("Max": Infinity, "Min": -1.0)";
  for (std::size_t at = 0; (at = minus.find(plus, at)) != std::string::npos;)
    minus.replace(at, plus.size(), R"("Max": 1.0, "Min": -Infinity)");
  CHECK(minus != mask);
  CHECK_FALSE(told(minus).anomaly());
  // It may be a mask: an anomaly, but not a fault.
  CHECK(told(mask).anomaly());
  CHECK_FALSE(told(mask).fault());
  const Analysis spread = told(dump_of(
      {entry("Tensor.masked_fill.0.forward", "c", "i"), entry("Functional.softmax.0.forward", "i", "c"),
       entry("Torch.log.0.forward", "c", "n"), entry("Functional.linear.0.forward", "n", "n")}));
  CHECK(spread.fault());
  REQUIRE(spread.roots.size() == 1);
  CHECK(spread.roots[0].entry.name == "Torch.log.0.forward");
}

TEST_CASE("a backward follows from what its forward kept") {
  const Scratch scratch;
  scratch.rank("rank0",
               {entry("Torch.mul.0.forward", "i", "n"), entry("Functional.softmax.0.forward", "n", "n"),
                entry("Functional.softmax.0.backward", "c", "n")});
  const Analysis analysis = run(scratch / "rank0");
  REQUIRE(analysis.roots.size() == 1);
  CHECK(analysis.roots[0].entry.name == "Torch.mul.0.forward");
  CHECK(analysis.roots[0].kind == RootKind::inf_to_nan);
}

TEST_CASE("the user's own frame") {
  const AnomalyRules rules = default_rules();
  const std::vector<std::string> frames = {
      "File /usr/lib/python3/dist-packages/torch/nn/f.py, line 1, in a, \n b",
      "File /data/model.py, line 2, in c, \n d", "File /data/main.py, line 3, in e, \n f"};
  CHECK(dump::user_frame(frames, rules.framework_frames) == "/data/model.py, line 2, in c: d");
  CHECK(dump::user_frame({frames[0]}, rules.framework_frames) ==
        "/usr/lib/python3/dist-packages/torch/nn/f.py, line 1, in a: b");
  // The code of a line does not count as its file.
  CHECK(dump::user_frame({"File /d/m.py, line 2, in c, \n open('/torch/x')"}, rules.framework_frames) ==
        "/d/m.py, line 2, in c: open('/torch/x')");
  CHECK(dump::user_frame({}, rules.framework_frames).empty());
  CHECK(dump::user_frame({"no frame at all"}, rules.framework_frames) == "no frame at all");
}

TEST_CASE("values in a few words") {
  const auto words = [](const std::string& text) { return describe(dump::entry_of(text), 0); };
  CHECK(words(tensor_json('i')) == "float32[2] min -1.0 max inf");
  CHECK(words(R"({"type": "torch.Tensor", "dtype": "torch.int64", "shape": [], "Max": 3, "Min": null})") ==
        "int64[] max 3");
  CHECK(words(integer(3)) == "3");
  CHECK(words(group("[0, 1]")) == "group [0, 1]");
  CHECK(words("null") == "None");
  CHECK(words("[1, [\"a\"], {}]") == "[1, [a], {}]");
  CHECK(words("[1, 2, 3, 4, 5, 6, 7, 8]") == "[1, 2, 3, 4, 5, 6, ... 8 in all]");
  CHECK(words(R"({"class_type": "torch.distributed.P2POp", "tensor": )" + tensor_json('c') +
              R"(, "op": "isend", "peer": 1})") == "isend 1 float32[2] min -1.0 max 1.0");
}

}  // namespace msprobe::anomaly_analyze_test
