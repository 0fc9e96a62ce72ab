// SPDX-License-Identifier: Apache-2.0
#include "anomaly/rules.hpp"

#include <doctest/doctest.h>

#include "support/error.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::anomaly_rules_test {

using namespace msprobe;
using namespace msprobe::anomaly;

namespace {

/// The rules with a file in front of them.
AnomalyRules with(const std::string& text) {
  const test::ScratchDirectory scratch;
  scratch.put("rules.yaml", text);
  return load_rules(scratch / "rules.yaml");
}

}  // namespace

TEST_CASE("which entries are communication") {
  const AnomalyRules rules = default_rules();
  // The list of the Python tool, and what its words catch besides.
  for (const char* api : {"send",
                          "recv",
                          "broadcast",
                          "all_reduce",
                          "reduce",
                          "all_gather",
                          "gather",
                          "isend",
                          "irecv",
                          "scatter",
                          "reduce_scatter",
                          "_reduce_scatter_base",
                          "_all_gather_base",
                          "all_to_all_single",
                          "all_to_all",
                          "all_gather_into_tensor",
                          "reduce_scatter_tensor",
                          "send_object_list",
                          "recv_object_list",
                          "batch_isend_irecv"}) {
    CAPTURE(api);
    CHECK(rules.is_communication(std::string("Distributed.") + api + ".0.forward"));
    CHECK(rules.is_communication(std::string("MintDistributed.") + api + ".0.forward"));
  }
  CHECK_FALSE(rules.is_communication("Distributed.barrier.0.forward"));
  CHECK_FALSE(rules.is_communication("Torch.scatter.0.forward"));
  CHECK(rules.is_never_blamed("Torch.empty_like.0.forward"));
  CHECK_FALSE(rules.is_never_blamed("Tensor.new_empty.0.forward"));
}

TEST_CASE("a file replaces what it names and nothing else") {
  const AnomalyRules rules =
      with("never_blamed: [Torch.mine]\nnorm_jump_above: 7\nexpected_bad:\n  a.b: {inputs: [2, out]}\n");
  CHECK(rules.never_blamed == std::vector<std::string>{"Torch.mine"});
  CHECK(rules.norm_jump_above == 7);
  REQUIRE(rules.expected_bad.size() == 1);
  CHECK(rules.expected_bad.at("a.b").inputs.positions == std::set<std::size_t>{2});
  CHECK(rules.expected_bad.at("a.b").inputs.names == NameSet{"out"});
  CHECK(rules.communication.words == default_rules().communication.words);
}

TEST_CASE("every list of operations takes the place of the table's") {
  const AnomalyRules rules = with(
      "names_source: [a]\nnames_destination: [b]\nwrite_only_inputs: {c: [3, into]}\nnever_blamed: "
      "[Torch.d]\n");
  const AnomalyRules built_in = default_rules();
  CHECK(rules.names_source == NameSet{"a"});
  CHECK(rules.names_destination == NameSet{"b"});
  CHECK(rules.never_blamed == std::vector<std::string>{"Torch.d"});
  REQUIRE(rules.write_only_inputs.size() == 1);
  CHECK(rules.write_only_inputs.at("c").positions == std::set<std::size_t>{3});
  CHECK(rules.write_only_inputs.at("c").names == NameSet{"into"});
  CHECK(rules.expected_bad.size() == built_in.expected_bad.size());
  CHECK(built_in.never_blamed == std::vector<std::string>{"Torch.empty", "Torch.fill"});
  CHECK(built_in.names_source == NameSet{"recv", "irecv", "recv_object_list", "broadcast", "scatter"});
  CHECK(built_in.names_destination == NameSet{"send", "isend", "send_object_list", "gather"});
  CHECK(built_in.write_only_inputs.size() == 12);
  CHECK(built_in.write_only_inputs.at("gather").positions == std::set<std::size_t>{1});
  CHECK(built_in.write_only_inputs.at("gather").names == NameSet{"gather_list"});
  CHECK(built_in.write_only_inputs.at("_all_gather_base").positions == std::set<std::size_t>{0});
  CHECK(built_in.expected_bad.size() == 10);
  CHECK(built_in.expected_bad.at("torch.empty").outputs == std::set<std::size_t>{0});
  CHECK(built_in.expected_bad.at("distributed.recv").inputs.names == NameSet{"tensor"});
  CHECK(built_in.expected_bad.at("distributed.all_gather").inputs.positions == std::set<std::size_t>{0});
  CHECK(built_in.expected_bad.at("distributed.all_gather").inputs.names.empty());
}

TEST_CASE("a file that holds no rules is refused with its line") {
  CHECK_THROWS_WITH_AS(with("norm_jump_above: much\n"),
                       doctest::Contains("line 1: norm_jump_above must be a number"), FormatError);
  CHECK_THROWS_WITH_AS(with("\nunheard_of: 1\n"), doctest::Contains("line 2: unknown rule 'unheard_of'"),
                       FormatError);
  CHECK_THROWS_WITH_AS(with("never_blamed: Torch.empty\n"), doctest::Contains("must be a list"), FormatError);
  CHECK_THROWS_WITH_AS(with("expected_bad: {a.b: {sideways: [1]}}\n"),
                       doctest::Contains("only inputs and outputs"), FormatError);
  CHECK_THROWS_WITH_AS(with("a: &x [1]\nb: *x\n"), doctest::Contains("anchors"), FormatError);
  CHECK_THROWS_AS(with("[1"), FormatError);
  CHECK_THROWS_AS(with("just text"), FormatError);
}

}  // namespace msprobe::anomaly_rules_test
