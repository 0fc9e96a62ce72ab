// SPDX-License-Identifier: Apache-2.0
// The origin of unrecorded inputs, gradients of one side alone, and differences that are not a second fault.
#include <doctest/doctest.h>

#include <algorithm>

#include "diagnosis/conclusion.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "diagnosis/sentences.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::provenance_test {
using testing::Asked;
using testing::count;
using testing::diagnosed;
using testing::first;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Two;
using testing::with_tensors;

namespace {

constexpr std::string_view kTrained = ", \"requires_grad\": true";
constexpr std::string_view kCut = ", \"requires_grad\": false";

std::string with(double size, std::string_view more) {
  return tensor(size, "[4, 64]", "torch.float32", more);
}

/// Max 3, the others as of a mask.
std::string masked(std::string_view dtype = "torch.float32") {
  return R"({"type": "torch.Tensor", "dtype": ")" + std::string(dtype) +
         R"(", "shape": [4, 64], "Max": 3.0, "Min": "-inf", "Mean": "-inf", "Norm": "inf"})";
}

/// Evidence that is no consequence of other evidence.
std::uint64_t independent(const RankDiagnosis& rank) {
  return static_cast<std::uint64_t>(std::count_if(
      rank.findings.begin(), rank.findings.end(),
      [](const Finding& each) { return each.is_evidence() && !each.downstream && !each.joined; }));
}

const testing::Construct kModules = testing::modules_of({
    {"Module.block.Block.forward.0", ""},
    {"Module.block.att.Attention.forward.0", "Module.block.Block.forward.0"},
    {"Tensor.masked_fill.0.forward", "Module.block.att.Attention.forward.0"},
    {"Tensor.lerp_.0.forward", "optimizer"},
    {"Functional.embedding.0.forward", ""},
});

}  // namespace

TEST_CASE("data comes in through all modules; what is made on the way comes from unrecorded code") {
  const std::string mask = tensor(5);
  const std::string other = rough(5, 0.2);
  Two two;
  const auto block = [&](bool outer, bool inner) {
    const auto inputs = [&](bool takes, const std::string& own) {
      return takes ? testing::Texts{tensor(1), own} : testing::Texts{tensor(1)};
    };
    const std::string result = tensor(2, "[4, 64]", "torch.float32", kTrained);
    two.forward("Module.block.Block.forward.0", inputs(outer, other), {result}, inputs(outer, mask),
                {result});
    two.forward("Module.block.att.Attention.forward.0", inputs(inner, other), {result}, inputs(inner, mask),
                {result});
    two.forward("Tensor.masked_fill.0.forward", {tensor(1), other}, {result}, {tensor(1), mask}, {result});
    return first(diagnosed(two, {}, kModules));
  };
  SUBCASE("handed to both") {
    const Finding found = block(true, true);
    CHECK(found.kind == Kind::data);
    CHECK(found.place == "input.1");
  }
  SUBCASE("made in between") {
    const Finding found = block(false, true);
    CHECK(found.kind == Kind::unrecorded);
    CHECK(found.confidence == Confidence::certain);
    CHECK(found.place == "input.1");
    CHECK(found.next == made_unrecorded("block", false));  // which hands it on
  }
  SUBCASE("made where it is used") {
    CHECK(block(false, false).kind == Kind::unrecorded);
  }
}

TEST_CASE("a part of data that a module was handed is data") {
  Two two;
  const std::string result = tensor(2, "[4, 64]", "torch.float32", kTrained);
  two.forward("Module.block.Block.forward.0", {tensor(1), rough(7, 0.1)}, {result}, {tensor(1), tensor(7)},
              {result});
  two.forward("Module.block.att.Attention.forward.0", {tensor(1), rough(7, 0.1)}, {result},
              {tensor(1), tensor(7)}, {result});
  two.forward("Tensor.masked_fill.0.forward", {tensor(1), rough(5, 0.2)}, {result}, {tensor(1), tensor(5)},
              {result});
  CHECK(first(diagnosed(two, {}, kModules)).kind == Kind::data);
}

TEST_CASE("what is trained is no data, and what an optimizer takes") {
  Two two;
  SUBCASE("a parameter of no module, or a part of one") {
    two.forward("Functional.embedding.0.forward", {rough(5, 0.2, "[4, 64]", "torch.float32", kTrained)},
                {tensor(2)}, {with(5, kTrained)}, {tensor(2)});
    const Finding found = first(diagnosed(two, {}, kModules));
    CHECK(found.kind == Kind::unrecorded);
    CHECK(found.next == made_unrecorded("", true));
  }
  SUBCASE("a gradient") {
    two.forward("Tensor.lerp_.0.forward", {rough(5, 0.2)}, {rough(2, 0.2)}, {tensor(5)}, {tensor(2)});
    const Finding found = first(diagnosed(two, {}, kModules));
    CHECK(found.kind == Kind::unrecorded);
    CHECK(found.next == made_unrecorded("optimizer", false));
  }
  SUBCASE("what a call overwrites, and leaves the same") {
    two.forward("Tensor.lerp_.0.forward", {rough(5, 0.2)}, {tensor(2)}, {tensor(5)}, {tensor(2)});
    CHECK(testing::no_evidence(diagnosed(two, {}, kModules)));
    return;
  }
  SUBCASE("what a call is given to write to") {
    std::string file;
    SUBCASE("recorded by its statistics") {}
    SUBCASE("and with a file") {
      file = R"(, "data_name": "Torch.mul.0.forward.kwargs.out.pt")";
    }
    const auto call = [&](testing::DumpText& side, double held) {
      side.forward("Torch.mul.0.forward", {tensor(5)}, {tensor(2)},
                   {testing::named("out", tensor(held, "[4, 64]", "torch.float32", file))});
    };
    call(two.target, 1e30);
    call(two.golden, 3);
    CHECK(testing::no_evidence(diagnosed(two, {}, kModules)));
    return;
  }
  SUBCASE("of no module, and not trained") {
    two.forward("Functional.embedding.0.forward", {rough(5, 0.2)}, {tensor(2)}, {tensor(5)}, {tensor(2)});
    CHECK(first(diagnosed(two, {}, kModules)).kind == Kind::data);
  }
}

TEST_CASE("a tensor that is cut off leads over the gradients that are wrong for it") {
  bool ours = true;
  SUBCASE("in this run") {
    ours = true;
  }
  SUBCASE("in golden") {
    ours = false;
  }
  Two two;
  two.forward("Functional.silu.0.forward", {with(1, kTrained)}, {with(2, kTrained)}, {with(1, kTrained)},
              {with(2, kTrained)});
  two.forward("Functional.linear.0.forward", {with(2, ours ? kCut : kTrained)}, {with(3, kTrained)},
              {with(2, ours ? kTrained : kCut)}, {with(3, kTrained)});
  two.backward("Functional.linear.0.backward", {tensor(4)}, {}, {tensor(4)}, {});
  const auto lacks = [](testing::DumpText& side) {
    side.backward("Functional.silu.0.backward", {tensor(5)}, {tensor(6)});
  };
  SUBCASE("the gradients of one side show it") {
    lacks(ours ? two.golden : two.target);
    const RankDiagnosis rank = diagnosed(two);
    CHECK(first(rank).kind == Kind::requires_grad);
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Functional.linear.0.forward");
    CHECK(first(rank).text ==
          (ours ? "requires_grad of input.0 is False, golden True; golden runs the backward of "
                  "Functional.silu.0, this run does not"
                : "requires_grad of input.0 is True, golden False; this run runs the backward of "
                  "Functional.silu.0, golden does not"));
    CHECK(rank.evidence == 1);
  }
  SUBCASE("and the gradients of others are its consequence") {
    lacks(ours ? two.golden : two.target);
    two.forward("Functional.relu.9.forward", {tensor(7)}, {tensor(7)}, {tensor(7)}, {tensor(7)});
    two.backward("Functional.relu.9.backward", {rough(8, 0.1)}, {rough(9, 0.1)}, {tensor(8)}, {tensor(9)});
    const RankDiagnosis rank = diagnosed(two);
    CHECK(first(rank).kind == Kind::requires_grad);
    CHECK(rank.findings.size() > 1);
    CHECK(independent(rank) == 1);
  }
  SUBCASE("a call that is computed again gives them") {
    two.target = testing::DumpText();
    two.golden = testing::DumpText();
    two.forward("Functional.silu.0.forward", {with(1, kTrained)}, {with(2, ours ? kCut : kTrained)},
                {with(1, kTrained)}, {with(2, ours ? kTrained : kCut)});
    two.backward("Functional.linear.0.backward", {tensor(4)}, {}, {tensor(4)}, {});
    testing::DumpText& again = ours ? two.target : two.golden;
    again.forward("Functional.silu.1.forward", {with(1, kTrained)}, {with(2, kTrained)});
    again.backward("Functional.silu.1.backward", {tensor(5)}, {tensor(6)});
    lacks(ours ? two.golden : two.target);
    CHECK(no_evidence(diagnosed(two)));
  }
  SUBCASE("a function that defines its backward") {
    std::string taken = "8";
    SUBCASE("that is right") {}
    SUBCASE("that is wrong") {
      taken = "7";
    }
    lacks(ours ? two.golden : two.target);
    for (testing::DumpText* side : {&two.target, &two.golden}) {
      side->gradients("Module.a.Linear.parameters_grad.0", {testing::named("w", "[" + tensor(0.5) + "]")});
      side->training = R"({"optimizers": [{"module": "torch.optim.sgd", "class": "SGD", "groups": [)"
                       R"({"parameters": ["a.w", "b.w"], "gradient_norms": [8, )" +
                       (side == &two.target ? taken : std::string("8")) + "]}]}]}";
    }
    // The function takes the parameter without its module.
    (ours ? two.golden : two.target)
        .gradients("Module.b.Linear.parameters_grad.0", {testing::named("w", "[" + tensor(0.5) + "]")});
    CHECK(no_evidence(diagnosed(two)) == (taken == "8"));
  }
  SUBCASE("both lack them: without effect it is a hint") {
    const RankDiagnosis rank = diagnosed(two);
    CHECK(no_evidence(rank));
    CHECK(first(rank).kind == Kind::requires_grad);
  }
  SUBCASE("both have them: the same") {
    lacks(two.target);
    lacks(two.golden);
    CHECK(no_evidence(diagnosed(two)));
  }
  SUBCASE("what is cut off stays so") {
    two.target = testing::DumpText();
    two.golden = testing::DumpText();
    two.forward("Functional.silu.0.forward", {with(1, kTrained)}, {with(2, ours ? kCut : kTrained)},
                {with(1, kTrained)}, {with(2, ours ? kTrained : kCut)});
    two.forward("Functional.relu.0.forward", {with(2, ours ? kCut : kTrained)},
                {with(3, ours ? kCut : kTrained)}, {with(2, ours ? kTrained : kCut)},
                {with(3, ours ? kTrained : kCut)});
    for (const std::string_view name : {"Functional.relu.0.backward", "Functional.silu.0.backward"})
      (ours ? two.golden : two.target).backward(name, {tensor(5)}, {tensor(6)});
    two.forward("Functional.gelu.0.forward", {tensor(8)}, {tensor(9)}, {tensor(8)}, {tensor(9)});
    two.backward("Functional.gelu.0.backward", {tensor(5)}, {tensor(6)}, {tensor(5)}, {tensor(6)});
    const RankDiagnosis rank = diagnosed(two);
    CHECK(first(rank).entry == "Functional.silu.0.forward");
    CHECK(first(rank).place == "output.0");
    CHECK(rank.evidence == 1);
  }
}

TEST_CASE("a backward that golden alone runs right ahead of a wrong gradient is the cause of it") {
  for (const bool wrong : {true, false}) {
    Two two;
    two.forward("Functional.relu.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    two.forward("Functional.silu.0.forward", {tensor(2)}, {tensor(3)}, {tensor(2)}, {tensor(3)});
    two.golden.backward("Functional.silu.0.backward", {tensor(5)}, {tensor(6)});
    const std::string gradient = wrong ? rough(7, 0.1) : tensor(7);
    two.backward("Functional.relu.0.backward", {gradient}, {gradient}, {tensor(7)}, {tensor(7)});
    const RankDiagnosis rank = diagnosed(two);
    if (!wrong) {
      CHECK(no_evidence(rank));
      continue;
    }
    CHECK(first(rank).kind == Kind::removed);
    CHECK(first(rank).entry == "Functional.silu.0.backward");
    CHECK(first(rank).text ==
          "golden runs the backward of Functional.silu.0, this run does not; error 1.0e-01 at "
          "Functional.relu.0.backward, 0 before");
    CHECK(independent(rank) == 1);
  }
}

TEST_CASE("statistics of infinities are blind, which the evidence after them says") {
  Two two;
  two.forward("Tensor.masked_fill.0.forward", {tensor(1)}, {masked()}, {tensor(1)}, {masked()});
  two.forward("Torch.softmax.0.forward", {masked()}, {rough(2, 0.3)}, {masked()}, {tensor(2)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).entry == "Torch.softmax.0.forward");
  CHECK(first(rank).confidence == Confidence::likely);
  CHECK(first(rank).next.ends_with("from before Tensor.masked_fill.0.forward"));
  CHECK(count(rank, Origin::not_compared) == 2);
  CHECK(count(rank, Origin::equal) == 1);
}

TEST_CASE("operands whose order does not matter pair by what is in them") {
  const auto added = [](std::string_view operation, double error) {
    Two two;
    two.forward("Torch.exp.0.forward", {tensor(1)}, {rough(5, 1e-7)}, {tensor(1)}, {tensor(5)});
    two.forward("Torch.exp.1.forward", {tensor(2)}, {rough(9, 1e-7)}, {tensor(2)}, {tensor(9)});
    two.forward(operation, {rough(9, 1e-7), rough(5, 1e-7)}, {rough(11, error)}, {tensor(5), tensor(9)},
                {tensor(11)});
    return diagnosed(two);
  };
  CHECK(no_evidence(added("Tensor.__add__.0.forward", 2e-7)));
  CHECK(first(added("Tensor.__add__.0.forward", 0.1)).kind == Kind::introduced);
  CHECK(first(added("Tensor.__sub__.0.forward", 0.1)).kind == Kind::feed);
}

TEST_CASE("what other calls are given as well is one fault") {
  const auto scaled = [](std::string_view golden_of_last) {
    Two two;
    for (int i = 0; i < 3; ++i) {
      const std::string theirs(i == 2 ? golden_of_last : "0.25");
      two.forward("Tensor.mul_." + std::to_string(i) + ".forward", {tensor(1 + i), scalar("float", "0.5")},
                  {rough(10 + i, 0.1)}, {tensor(1 + i), scalar("float", theirs)}, {tensor(10 + i)});
    }
    return diagnosed(two);
  };
  const RankDiagnosis rank = scaled("0.25");
  CHECK(first(rank).kind == Kind::argument);
  CHECK(first(rank).entry == "Tensor.mul_.0.forward");
  CHECK(first(rank).repeated == 2);
  CHECK(first(rank).concerned == 3);
  CHECK(independent(rank) == 1);
  CHECK(rank.evidence == 3);
  CHECK(scaled("0.125").findings.front().repeated == 1);  // another argument is another difference
}

TEST_CASE("evidence behind something not recorded may be a consequence") {
  for (const bool tainted : {true, false}) {
    Two two;
    two.forward("Functional.linear.0.forward", {tensor(1)}, {rough(2, 0.1)}, {tensor(1)}, {tensor(2)});
    // Its input was sliced from an unknown tensor.
    two.forward("Torch.bmm.0.forward", {tainted ? rough(50, 1e-3) : tensor(50)}, {rough(60, 0.3)},
                {tensor(50)}, {tensor(60)});
    const RankDiagnosis rank = diagnosed(two, with_tensors);
    CHECK(first(rank).entry == "Functional.linear.0.forward");
    CHECK(rank.evidence == 2);
    CHECK(independent(rank) == (tainted ? 1 : 2));
  }
}

TEST_CASE("entries of one side alone right before a change are its cause") {
  Two two;
  two.forward("Functional.silu.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.target.forward("Tensor.__setitem__.0.forward", {tensor(2)}, {});
  two.forward("Functional.linear.0.forward", {rough(2, 0.1)}, {rough(3, 0.1)}, {tensor(2)}, {tensor(3)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).kind == Kind::added);
  CHECK(first(rank).entry == "Tensor.__setitem__.0.forward");
  CHECK(independent(rank) == 1);
}

TEST_CASE("statistics are not compared with tensors") {
  Two two;
  two.forward("Functional.relu.0.forward", {tensor(1)}, {rough(2, 1e-3)}, {tensor(1)}, {tensor(2)});
  two.forward("Functional.silu.0.forward", {rough(2, 1e-3)}, {tensor(3)}, {tensor(2)}, {tensor(3)});
  // The tensors say that the first is right; those of what takes it cannot be read.
  const auto partly = [&](bool readable) {
    return diagnosed(two, [=](testing::Asked& asked) {
      with_tensors(asked);
      for (std::size_t i = 0; i < asked.rank.rows.size(); ++i) {
        const std::string_view name = asked.rank.name_of(asked.rank.rows[i]);
        measuring::Measure& found = asked.rank.metrics[i].measure;
        if (name.starts_with("Functional.relu.0.forward.output")) found.e = found.b = 0;
        if (name.starts_with("Functional.silu.0.forward.input") && !readable) found.known = false;
      }
    });
  };
  CHECK(first(partly(true)).kind == Kind::unrecorded);
  CHECK(first(partly(true)).text.find("Functional.relu.0.forward") != std::string::npos);
  CHECK(no_evidence(partly(false)));
}

TEST_CASE("inputs that evidence has no part in are not propagated") {
  Two two;
  two.forward("Functional.relu.0.forward", {tensor(1)}, {rough(2, 1e-7)}, {tensor(1)}, {tensor(2)});
  two.forward("Functional.silu.0.forward", {tensor(5)}, {rough(6, 0.1)}, {tensor(5)}, {tensor(6)});
  two.forward("Tensor.__add__.0.forward", {rough(2, 1e-7), rough(6, 0.1)}, {rough(7, 0.1)},
              {tensor(2), tensor(6)}, {tensor(7)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).entry == "Functional.silu.0.forward");
  REQUIRE(rank.origin.size() == 7);
  CHECK(rank.origin[4] == Origin::rounding);
  CHECK(rank.origin[5] == Origin::propagated);
  CHECK(rank.origin[6] == Origin::propagated);
}

TEST_CASE("the largest excess before the culprit counts only rows before it") {
  Two two;
  two.forward("Functional.relu.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.forward("Functional.silu.0.forward", {tensor(2)}, {rough(3, 0.1)}, {tensor(2)}, {tensor(3)});
  two.forward("Functional.gelu.0.forward", {rough(3, 0.1)}, {rough(4, 0.5)}, {tensor(3)}, {tensor(4)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(rank.agreeing == 1);
  CHECK(rank.rounded == 0);
  CHECK(rank.largest_before == 0);
  CHECK(rank.largest_excess > 4);
}

TEST_CASE("what golden alone runs is named with golden's module and line") {
  Two two;
  two.forward("Functional.relu.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.golden.forward("Torch.norm.0.forward", {tensor(8)}, {tensor(9)});
  two.forward("Functional.silu.0.forward", {tensor(2)}, {rough(3, 0.1)}, {tensor(2)}, {tensor(3)});
  struct Lines : testing::NoFiles {
    std::string golden_line(std::string_view entry) override { return "train.py of " + std::string(entry); }
  };
  const RankDiagnosis rank = diagnosed(two, [](testing::Asked& asked) {
    asked.rank.golden_construct = testing::modules_of({{"Torch.norm.0.forward", "clip_grad"}});
    asked.reading = std::make_unique<Lines>();
  });
  CHECK(first(rank).kind == Kind::removed);
  CHECK(first(rank).module == "clip_grad");
  CHECK(first(rank).where == "in golden: train.py of Torch.norm.0.forward");
}

TEST_CASE("a wrong gradient has the line of its forward") {
  Two two;
  two.forward("Functional.gelu.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.backward("Functional.gelu.0.backward", {tensor(3)}, {rough(4, 0.2)}, {tensor(3)}, {tensor(4)});
  const Finding found = first(diagnosed(two, [](Asked& asked) {
    dump::StackTable& stacks = asked.rank.target.stacks.emplace();
    stacks.add_entry("Functional.gelu.0.forward",
                     stacks.add_stack({"File m.py, line 7, in forward, \n y = gelu(x)"}));
  }));
  CHECK(found.entry == "Functional.gelu.0.backward");
  CHECK(found.where.find("m.py, line 7") != std::string::npos);
}

TEST_CASE("models that take the same have no other data") {
  const auto with = [](const std::string& ours, const std::string& theirs) {
    Two two;
    two.forward("Functional.linear.0.forward", {rough(1, 0.5)}, {rough(2, 0.5)}, {tensor(1)}, {tensor(2)});
    two.target.training = R"({"inputs": [[)" + ours + "]]}";
    two.golden.training = R"({"inputs": [[)" + theirs + "]]}";
    return first(diagnosed(two)).kind;
  };
  CHECK(with(tensor(5), tensor(5)) == Kind::unrecorded);
  CHECK(with(rough(5, 1e-7), tensor(5)) == Kind::unrecorded);
  CHECK(with(rough(5, 1e-2), tensor(5)) == Kind::data);
  CHECK(with(tensor(5) + "," + tensor(6), tensor(5)) == Kind::data);
  CHECK(with("", "") == Kind::data);  // nothing is known
}

TEST_CASE("a view of memory that is not written yet") {
  // As FSDP2 takes them of the buffers that it gathers into.
  const auto with = [](std::string_view reader) {
    Two two;
    two.forward("Functional.relu.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    two.forward("Tensor.narrow.0.forward", {tensor(7e20)}, {tensor(5e20)}, {tensor(3)}, {tensor(4)});
    two.forward("Tensor." + std::string(reader) + ".0.forward", {tensor(5e20), tensor(2)}, {tensor(2)},
                {tensor(4), tensor(2)}, {tensor(2)});
    return diagnosed(two);
  };
  CHECK(no_evidence(with("copy_")));
  CHECK(first(with("add")).entry == "Tensor.narrow.0.forward");
}

TEST_CASE("statistics that are equal do not show the order of elements") {
  Two two;
  two.forward("Functional.embedding.0.forward", {tensor(1, "[64]", "torch.int64"), tensor(0.3, "[64, 64]")},
              {tensor(3)}, {tensor(1, "[64]", "torch.int64"), tensor(0.3, "[64, 64]")}, {tensor(3)});
  const std::string weight = tensor(0.1, "[64, 64]");
  SUBCASE("of what unrecorded code made") {
    two.forward("Functional.linear.0.forward", {tensor(5), weight}, {rough(2, 0.3)}, {tensor(5), weight},
                {tensor(2)});
    CHECK(first(diagnosed(two))
              .text.ends_with("; or the elements of input.0 (from unrecorded code) are in another order"));
  }
  SUBCASE("of what an entry made") {
    two.forward("Functional.linear.0.forward", {tensor(3), weight}, {rough(2, 0.3)}, {tensor(3), weight},
                {tensor(2)});
    CHECK(first(diagnosed(two))
              .text.ends_with(
                  "; or the elements of input.0 (from Functional.embedding.0.forward) are in another "
                  "order"));
  }
}

TEST_CASE("the same elements in another order") {
  struct Sorted : testing::NoFiles {
    bool same_elements(std::uint32_t, std::uint32_t) override { return true; }
  };
  const auto text = [](double apart) {
    Two two;
    two.forward("Functional.linear.0.forward", {rough(1, apart)}, {rough(2, 0.5)}, {tensor(1)}, {tensor(2)});
    const RankDiagnosis rank = diagnosed(two, [](testing::Asked& asked) {
      testing::with_tensors(asked);
      asked.rank.metrics[0].measure.e = asked.rank.metrics[0].measure.b = 0.7;
      asked.reading = std::make_unique<Sorted>();
    });
    return first(rank).text;
  };
  CHECK(text(0) ==
        "input.0 comes from outside the recorded code and has golden's elements in another order (error "
        "7.0e-01)");
  CHECK(text(0.5).find("another order") == std::string::npos);  // their statistics say so
}

}  // namespace msprobe::diagnosis::provenance_test
