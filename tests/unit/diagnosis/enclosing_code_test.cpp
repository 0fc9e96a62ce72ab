// SPDX-License-Identifier: Apache-2.0
// Modules alone: the module whose code runs between two of them.
#include "diagnosis/enclosing_code.hpp"

#include <doctest/doctest.h>

#include <string>

#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::enclosing_code_test {
using testing::diagnosed;
using testing::first;
using testing::modules_of;
using testing::tensor;
using testing::Two;

/// An attention: its own code is between v and o; `given` is what o takes, in golden 4.
Two attention(double given, bool operations = false) {
  Two two;
  two.forward("Module.a.attn.v.Linear.forward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  if (operations) two.forward("Torch.tanh.0.forward", {tensor(2)}, {tensor(2.5)}, {tensor(2)}, {tensor(2.5)});
  two.forward("Module.a.attn.o.Linear.forward.0", {tensor(given)}, {tensor(given * 1.5)}, {tensor(4)},
              {tensor(6)});
  two.forward("Module.a.attn.Attention.forward.0", {tensor(1)}, {tensor(given * 1.5)}, {tensor(1)},
              {tensor(6)});
  return two;
}
const testing::Construct kModules =
    modules_of({{"Module.a.attn.v.Linear.forward.0", "Module.a.attn.Attention.forward.0"},
                {"Module.a.attn.o.Linear.forward.0", "Module.a.attn.Attention.forward.0"},
                {"Torch.tanh.0.forward", "Module.a.attn.Attention.forward.0"}});

TEST_CASE("the code between two children is that of the module around them") {
  const RankDiagnosis rank = diagnosed(attention(5), {}, kModules);
  CHECK(first(rank).entry == "Module.a.attn.Attention.forward.0");
  CHECK(first(rank).golden_entry == "Module.a.attn.Attention.forward.0");
  CHECK(first(rank).module == "a.attn");
  CHECK(
      first(rank).text.starts_with("its own code between Module.a.attn.v.Linear.forward.0 and "
                                   "Module.a.attn.o.Linear.forward.0: input.0 differs by "));
  CHECK(first(rank).next.starts_with("record a.attn again at level mix"));
}

TEST_CASE("where operations are recorded, the entry itself is named") {
  CHECK(first(diagnosed(attention(5, true), {}, kModules)).entry == "Module.a.attn.o.Linear.forward.0");
}

TEST_CASE("what a module was given is the code around it") {
  // The child takes what its module takes: the model's own code, ahead of both, changed it.
  Two two;
  two.forward("Module.e.Embedding.forward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.forward("Module.b.n.LayerNorm.forward.0", {tensor(4)}, {tensor(3)}, {tensor(2)}, {tensor(2.5)});
  two.forward("Module.b.Block.forward.0", {tensor(4)}, {tensor(3)}, {tensor(2)}, {tensor(2.5)});
  const RankDiagnosis rank =
      diagnosed(two, {}, modules_of({{"Module.b.n.LayerNorm.forward.0", "Module.b.Block.forward.0"}}));
  CHECK(first(rank).entry == "Module.b.Block.forward.0");
  CHECK(first(rank).text.starts_with(
      "the model's own code between Module.e.Embedding.forward.0 and Module.b.Block.forward.0: "));
}

}  // namespace msprobe::diagnosis::enclosing_code_test
