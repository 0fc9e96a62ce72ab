// SPDX-License-Identifier: Apache-2.0
// Calls that were given other arguments, types or shapes, and whether it has an effect.
#include "diagnosis/rank_diagnosis.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "diagnosis/sentences.hpp"
#include "pairing/operations.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::call_rule_test {
using testing::Chain;
using testing::diagnosed;
using testing::first;
using testing::is_one_cause;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Texts;
using testing::Two;

TEST_CASE("an argument counts by its effect") {
  Chain chain;
  chain.arguments[1] = {scalar("str", "\"bilinear\"")};
  chain.golden_arguments[1] = {scalar("str", "\"nearest\"")};
  SUBCASE("with") {
    chain.outputs[1] = rough(3, 1e-6);
    const Finding found = first(diagnosed(chain.text()));
    CHECK(found.kind == Kind::argument);
    CHECK(found.confidence == Confidence::certain);
    CHECK(found.text.find("'bilinear', golden 'nearest'") != std::string::npos);
    CHECK(found.place == "input.2");
  }
  SUBCASE("without") {
    chain.outputs[1] = tensor(3);
    const RankDiagnosis rank = diagnosed(chain.text());
    CHECK(no_evidence(rank));
    CHECK(first(rank).kind == Kind::argument);
  }
}

TEST_CASE("an argument whose effect only the gradients show") {
  Chain chain;
  chain.arguments[2] = {scalar("float", "0.2")};
  chain.golden_arguments[2] = {scalar("float", "0.1")};
  chain.outputs[2] = tensor(4);
  Two two = chain.text();
  SUBCASE("its own") {
    two.backward("Functional.linear.2.backward", {tensor(1.5)}, {rough(0.7, 1e-2)}, {tensor(1.5)},
                 {tensor(0.7)});
  }
  SUBCASE("that of what gave it its input") {
    two.backward("Functional.linear.1.backward", {rough(1.5, 1e-2)}, {rough(0.7, 1e-2)}, {tensor(1.5)},
                 {tensor(0.7)});
  }
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).kind == Kind::argument);
  CHECK(first(rank).entry == "Functional.linear.2.forward");
  CHECK(first(rank).confidence == Confidence::certain);
  CHECK(first(rank).text.find("error 1.0e-02") != std::string::npos);
  CHECK(is_one_cause(rank));
}

TEST_CASE("a whole number that comes out otherwise is an effect") {
  const auto whole = [](std::string_view largest) {
    return R"({"type": "torch.Tensor", "dtype": "torch.int64", "shape": [4, 3], "Max": )" +
           std::string(largest) + R"(, "Min": 0, "Mean": 0.4, "Norm": 2.0})";
  };
  Two two;
  two.forward("Functional.one_hot.0.forward", {whole("2"), scalar("int", "4")}, {whole("3")},
              {whole("2"), scalar("int", "12")}, {whole("1")});
  CHECK(first(diagnosed(two)).kind == Kind::argument);
  CHECK(first(diagnosed(two)).confidence == Confidence::certain);
}

TEST_CASE("numbers that rounding explains are no other argument") {
  Chain chain;
  chain.arguments[1] = {scalar("float", "0.30000001")};
  chain.golden_arguments[1] = {scalar("float", "0.3")};
  chain.outputs[1] = rough(3, 2e-7);
  CHECK(no_evidence(diagnosed(chain.text())));
}

TEST_CASE("a dtype counts by its effect") {
  const auto cast = [](double error) {
    Two two;
    two.forward("Torch.exp.0.forward", {tensor(1)}, {rough(1, error, "[4, 64]", "torch.bfloat16")},
                {tensor(1)}, {tensor(1)});
    for (int i = 1; i < 4; ++i)
      two.forward("Torch.exp." + std::to_string(i) + ".forward", {tensor(i)}, {tensor(2 * i)}, {tensor(i)},
                  {tensor(2 * i)});
    return first(diagnosed(two));
  };
  const Finding found = cast(2e-3);  // within the roundoff of bfloat16
  CHECK(found.kind == Kind::dtype);
  CHECK(found.confidence == Confidence::certain);
  CHECK(found.place == "output.0");
  CHECK(found.text.find("torch.bfloat16, golden torch.float32") != std::string::npos);
  CHECK(cast(0).confidence == Confidence::hint);
}

TEST_CASE("a run in another type has a setting, and is judged by its rounding") {
  const auto half = [](double size, double error) { return rough(size, error, "[4, 64]", "torch.float16"); };
  const auto run = [&](double error) {
    Two two;
    two.forward("Torch.exp.0.forward", {half(1, 2e-4)}, {half(2, 3e-4)}, {tensor(1)}, {tensor(2)});
    two.forward("Torch.exp.1.forward", {half(2, 3e-4)}, {half(3, error)}, {tensor(2)}, {tensor(3)});
    return diagnosed(two);
  };
  const RankDiagnosis right = run(6e-4);
  CHECK(no_evidence(right));
  CHECK(std::any_of(right.notes.begin(), right.notes.end(), [](const std::string& note) {
    return note.starts_with("this run computes in torch.float16, golden in torch.float32 (4 of 4 ");
  }));
  CHECK(first(run(0.3)).entry == "Torch.exp.1.forward");
  CHECK(first(run(0.3)).kind == Kind::introduced);
}

TEST_CASE("parameters that are all of another type are a setting, unless updates are lost") {
  const auto layers = [](double step, double golden_step, double error) {
    Two two;
    for (int i = 0; i < 4; ++i) {
      const std::string call = std::to_string(i);
      const double size = 1 + i;
      const std::string ours = tensor(0.1 * size * step, "[64, 64]", "torch.bfloat16");
      const std::string theirs = tensor(0.1 * size * golden_step, "[64, 64]");
      two.forward("Functional.linear." + call + ".forward", {rough(size, i > 0 ? error : 0), ours},
                  {rough(size + 1, error)}, {tensor(size), theirs}, {tensor(size + 1)});
      two.target.forward("Module.l" + call + ".Linear.forward.0", {rough(size, i > 0 ? error : 0)},
                         {rough(size + 1, error)}, {}, {named("weight", ours)});
      two.golden.forward("Module.l" + call + ".Linear.forward.0", {tensor(size)}, {tensor(size + 1)}, {},
                         {named("weight", theirs)});
    }
    return two;
  };
  History history;
  const RankDiagnosis right = diagnosed(layers(1, 1, 1e-3), history);
  CHECK(no_evidence(right));
  CHECK(std::any_of(right.notes.begin(), right.notes.end(), [](const std::string& note) {
    return note.starts_with("parameters are torch.bfloat16 in this run, torch.float32 in golden (4 of 4)");
  }));
  const Finding lost = first(diagnosed(layers(1, 1.001, 1e-3), history));
  CHECK(lost.kind == Kind::optimizer);
  CHECK(lost.text ==
        "optimizer: 4 of 4 parameters are unchanged in this run since the step before, golden updates them");
}

TEST_CASE("products in another type are automatic casting") {
  // The last product has the same type on both sides.
  const auto run = [](std::string_view last_type) {
    Two two;
    const std::string weight = tensor(0.1, "[64, 64]");
    for (int i = 0; i < 6; ++i) {
      const std::string type(i == 5 ? last_type : "torch.bfloat16");
      const std::string output = rough(2, 2e-3, "[4, 64]", type);
      const std::string golden = i == 5 ? rough(2, 0, "[4, 64]", type) : tensor(2);
      two.forward("Functional.linear." + std::to_string(i) + ".forward", {tensor(1), weight}, {output},
                  {tensor(1), weight}, {golden});
      two.forward("Functional.layer_norm." + std::to_string(i) + ".forward", {output}, {rough(3, 2e-3)},
                  {golden}, {tensor(3)});
    }
    return diagnosed(two);
  };
  const RankDiagnosis all = run("torch.float32");
  CHECK(no_evidence(all));
  CHECK(std::any_of(all.notes.begin(), all.notes.end(), [](const std::string& note) {
    return note.starts_with(
        "this run computes products of matrices in torch.bfloat16, golden in torch.float32 "
        "(5 of 5 pairs of their outputs)");
  }));
  CHECK(first(run("torch.bfloat16")).kind == Kind::dtype);  // five of six do not make a setting
}

TEST_CASE("what one side gives by name and the other by position is the same") {
  const auto padded = [](const std::string& ours) {
    Two two;
    two.target.forward("Functional.conv2d.0.forward", {tensor(1), tensor(0.1)}, {rough(2, 0.3)},
                       {testing::named("padding", scalar("int", ours))});
    // Stride, which is its default, and padding.
    two.golden.forward("Functional.conv2d.0.forward",
                       {tensor(1), tensor(0.1), scalar("int", "1"), scalar("int", "2")}, {tensor(2)});
    return first(diagnosed(two));
  };
  CHECK(padded("2").kind == Kind::introduced);
  CHECK(padded("3").kind == Kind::argument);
}

TEST_CASE("a truth may choose another kernel, which rounds otherwise") {
  const auto attention = [](double error) {
    Two two;
    two.forward("Functional.attention.0.forward", {tensor(1), scalar("bool", "true")}, {rough(2, error)},
                {tensor(1), scalar("bool", "false")}, {tensor(2)});
    return first(diagnosed(two));
  };
  CHECK_FALSE(attention(2.5e-7).is_evidence());
  CHECK(attention(1e-3).confidence == Confidence::certain);
}

TEST_CASE("an overflow of float16 is named as such, whichever side has it") {
  const auto infinite = [](std::string text) {
    const std::string key = "\"Max\": ";
    const std::size_t at = text.find(key) + key.size();
    return text.replace(at, text.find(',', at) - at, "Infinity");
  };
  const std::string half = infinite(tensor(3e4, "[4, 64]", "torch.float16"));
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    Two two;
    const std::string small = tensor(1, "[4, 64]", "torch.float16");
    const std::string large = tensor(3e4);  // up to 90,000
    two.forward("Torch.exp.0.forward", {ours ? small : tensor(1)}, {ours ? half : large},
                {ours ? tensor(1) : small}, {ours ? large : half});
    const Finding found = first(diagnosed(two));
    CHECK(found.entry == "Torch.exp.0.forward");
    CHECK(found.is_evidence());
    CHECK(found.text.starts_with(
        ours ? "output.0 overflows torch.float16 in this run: in golden its largest element is 9e+04"
             : "output.0 overflows torch.float16 in golden: in this run its largest"));
  }
}

TEST_CASE("a shape without effect is a hint, and a clue for an error after it") {
  const auto reshaped = [](double error) {
    Two two;
    two.forward("Tensor.reshape.0.forward", {tensor(1)}, {tensor(1, "[64, 4]")}, {tensor(1)}, {tensor(1)});
    two.forward("Torch.add.0.forward", {tensor(1, "[64, 4]"), tensor(4, "[1]")}, {rough(2, error, "[64, 4]")},
                {tensor(1), tensor(4, "[1]")}, {tensor(2)});
    return diagnosed(two);
  };
  CHECK(no_evidence(reshaped(1e-7)));
  const Finding found = first(reshaped(0.3));
  CHECK(found.entry == "Torch.add.0.forward");
  CHECK(found.text.find("before it, at Tensor.reshape.0.forward, the shape of output.0 is [64, 4], golden "
                        "[4, 64]") != std::string::npos);
}

TEST_CASE("numbers and parameters that another type changes are not a fault") {
  const std::string weight = rough(0.1, 2e-4, "[64, 64]", "torch.float16");
  const auto half = [](double size, double error) { return rough(size, error, "[4, 64]", "torch.float16"); };
  for (const bool ours : {true, false}) {  // whose run is in float16
    CAPTURE(ours);
    Two two;
    const std::string full = tensor(0.1, "[64, 64]");
    two.forward("Functional.linear.0.forward", {ours ? half(1, 2e-4) : tensor(1), ours ? weight : full},
                {ours ? half(2, 3e-4) : tensor(2)}, {ours ? tensor(1) : half(1, 2e-4), ours ? full : weight},
                {ours ? tensor(2) : half(2, 3e-4)});
    const std::string small = scalar("float", "-65504.0");
    const std::string smallest = scalar("float", "-3.4028234663852886e+38");
    two.forward("Tensor.masked_fill.0.forward", {ours ? half(2, 3e-4) : tensor(2), ours ? small : smallest},
                {ours ? half(3, 3e-4) : tensor(3)},
                {ours ? tensor(2) : half(2, 3e-4), ours ? smallest : small},
                {ours ? tensor(3) : half(3, 3e-4)});
    INFO(first(diagnosed(two)).entry, ": ", first(diagnosed(two)).text);
    CHECK(no_evidence(diagnosed(two)));
  }
}

TEST_CASE("an argument whose effect is the type or the checksum of the output") {
  Two two;
  const Texts arguments = {tensor(1), scalar("str", "\"half\"")};
  const Texts golden_arguments = {tensor(1), scalar("str", "\"single\"")};
  SUBCASE("type") {
    two.forward("Functional.softmax.0.forward", arguments, {tensor(2, "[4, 64]", "torch.bfloat16")},
                golden_arguments, {tensor(2)});
    const Finding found = first(diagnosed(two));
    CHECK(found.kind == Kind::argument);
    CHECK(found.confidence == Confidence::certain);
    CHECK(found.text.find("output.0 is torch.bfloat16, golden torch.float32") != std::string::npos);
  }
  SUBCASE("checksum") {
    const auto hashed = [](const char* hash) {
      return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 64], "md5": ")" +
             std::string(hash) + "\"}";
    };
    two.forward("Functional.softmax.0.forward", {hashed("00000001"), arguments[1]}, {hashed("00000002")},
                {hashed("00000001"), golden_arguments[1]}, {hashed("00000003")});
    const Finding found = first(diagnosed(two));
    CHECK(found.kind == Kind::argument);
    CHECK(found.text.find("the checksum of output.0 differs") != std::string::npos);
    Two behind;  // what its inputs brought is not its own
    behind.forward("Functional.softmax.0.forward", {hashed("00000001"), arguments[1]}, {hashed("00000002")},
                   {hashed("00000004"), golden_arguments[1]}, {hashed("00000003")});
    CHECK(no_evidence(diagnosed(behind)));
  }
}

TEST_CASE("a parameter that one side's layers lack is named with its layer") {
  const auto modules =
      testing::modules_of({{"Functional.linear.0.forward", "Module.query.Linear.forward.0"},
                           {"Functional.linear.1.forward", "Module.key.Linear.forward.0"},
                           {"Functional.linear.2.forward", "Module.value.Linear.forward.0"}});
  const auto projected = [&](bool ours, double bias) {
    Two two;
    for (testing::DumpText* side : {&two.target, &two.golden}) {
      const bool has = (side == &two.target) == ours;
      int layer = 0;
      for (const std::string name : {"query", "key", "value"}) {
        Texts inputs = {tensor(1), tensor(0.1 + layer, "[64, 64]")};
        Texts parameters = {named("weight", inputs[1])};
        if (has) {
          inputs.push_back(tensor(bias, "[64]"));
          parameters.push_back(named("bias", inputs[2]));
        }
        const std::string output = tensor(2 + layer + (has ? bias : 0));
        side->forward("Functional.linear." + std::to_string(layer++) + ".forward", inputs, {output});
        side->forward("Module." + name + ".Linear.forward.0", {tensor(1)}, {output}, {}, parameters);
      }
    }
    return diagnosed(
        two, [&](testing::Asked& asked) { asked.rank.golden_construct = modules; }, modules);
  };
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    CHECK(no_evidence(projected(ours, 0)));  // as they begin
    const RankDiagnosis rank = projected(ours, 0.4);
    CHECK(first(rank).kind == Kind::argument);
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Functional.linear.0.forward");
    CHECK(first(rank).module == "query");
    CHECK(sentence(first(rank))
              .starts_with(ours ? "argument bias (input.2) is a tensor, golden not given; output error "
                                : "argument bias (input.2) is not given, golden a tensor; output error "));
    CHECK(sentence(first(rank)).ends_with(" (2 more calls get the same argument)"));
  }
}

TEST_CASE("where modules alone are recorded, a parameter that one side lacks is named") {
  const auto layer = [](bool ours, double out) {
    Two two;
    const std::string weight = named("weight", tensor(0.1, "[64, 64]"));
    const Texts both = {weight, named("bias", tensor(0.3, "[64]"))};
    two.target.forward("Module.fc.Linear.forward.0", {tensor(1)}, {rough(2, out)}, {},
                       ours ? both : Texts{weight});
    two.golden.forward("Module.fc.Linear.forward.0", {tensor(1)}, {tensor(2)}, {},
                       ours ? Texts{weight} : both);
    two.forward("Module.act.GELU.forward.0", {rough(2, out)}, {rough(3, out)}, {tensor(2)}, {tensor(3)});
    return diagnosed(two);
  };
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    // A parameter that changes nothing may be another form of the others, as a norm of weights is.
    CHECK(layer(ours, testing::kNoise).findings.empty());
    const RankDiagnosis rank = layer(ours, 0.2);
    CHECK(first(rank).entry == "Module.fc.Linear.forward.0");
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).text.starts_with(
        ours ? "this run has the parameter fc.bias, golden has not; output error "
             : "golden has the parameter fc.bias, this run has not; output error "));
    CHECK(testing::is_one_cause(rank));
  }
}

}  // namespace msprobe::diagnosis::call_rule_test
