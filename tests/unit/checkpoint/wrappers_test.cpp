// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/names.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace msprobe::checkpoint::wrappers_test {

TEST_CASE("names of wrappers are dropped wherever they stand") {
  CHECK(without_wrappers("_orig_mod.a.b") == "a.b");
  CHECK(without_wrappers("a._fsdp_wrapped_module.b._checkpoint_wrapped_module.c") == "a.b.c");
  CHECK(without_wrappers("a.my_orig_mod.b") == "a.my_orig_mod.b");
  CHECK(without_wrappers("_orig_mod") == "_orig_mod");
  CHECK(without_wrappers("a..b") == "a..b");
}

TEST_CASE("heads are taken off in their order, where a name has them") {
  CHECK(without_heads("state_dict.model.a", {"state_dict", "model"}) == "a");
  CHECK(without_heads("model.state_dict.a", {"state_dict", "model"}) == "state_dict.a");
  CHECK(without_heads("model", {"model"}) == "model");
  CHECK(without_heads("model.", {"model"}) == "model.");
}

TEST_CASE("the heads of most names come first") {
  const auto all =
      possible_heads({"state_dict.model.model.a", "state_dict.model.model.b", "state_dict.model.lm_head"});
  CHECK(all.front().empty());
  const auto has = [&](const Heads& heads) { return std::find(all.begin(), all.end(), heads) != all.end(); };
  CHECK(has({"state_dict"}));
  CHECK(has({"state_dict", "model"}));
  CHECK(has({"state_dict", "model", "model"}));
  CHECK(possible_heads({"layers.0.w"}).size() == 1);
  // Endless heads of a hostile name end.
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "model.";
  CHECK(possible_heads({deep + "a"}).size() < 10);
}

}  // namespace msprobe::checkpoint::wrappers_test
