// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/match.hpp"

#include <doctest/doctest.h>

#include "unit/checkpoint/memory_tensor.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::checkpoint::match_test {
namespace {

using tensor::DType;

CheckpointEntry named(const std::string& name, const Shape& shape = {1}, float first = 0) {
  std::vector<float> values;
  std::int64_t count = 1;
  for (const std::int64_t length : shape) count *= length;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(first + static_cast<float>(i));
  CheckpointEntry entry;
  entry.parameter = in_memory(DType::float32, shape, values, name);
  return entry;
}

Checkpoint checkpoint(const std::vector<std::string>& names) {
  Checkpoint result;
  for (const std::string& name : names) result.entries.push_back(named(name));
  return result;
}

std::vector<std::string> pair_names(const Pairing& pairing) {
  std::vector<std::string> names;
  for (const auto& pair : pairing.pairs) names.push_back(pair.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("what wrappers put before the names is dropped where that makes them match") {
  const Names bare = {"layers.0.w", "norm.w"};
  for (const Names& wrapped :
       {Names{"module.layers.0.w", "module.norm.w"}, Names{"model.layers.0.w", "model.norm.w"},
        Names{"state_dict.layers.0.w", "state_dict.norm.w"}}) {
    const Pairing pairing = pair_up(checkpoint(wrapped), checkpoint(bare), NameMap::built_in());
    CHECK(pair_names(pairing) == bare);
    CHECK(pairing.remarks.size() == 1);
    CHECK(pairing.only_first.empty());
  }
  // Both have the same wrapper: nothing to drop.
  const Pairing same =
      pair_up(checkpoint({"model.a", "b"}), checkpoint({"model.a", "b"}), NameMap::built_in());
  CHECK(pair_names(same) == Names{"b", "model.a"});
  CHECK(same.remarks.empty());
}

TEST_CASE("a name that would collide without its prefix keeps it, and nothing is lost") {
  const Pairing pairing =
      pair_up(checkpoint({"model.a", "a", "model.b"}), checkpoint({"b"}), NameMap::built_in());
  CHECK(pair_names(pairing) == Names{"b"});
  CHECK(pairing.only_first == Names{"a", "model.a"});
}

TEST_CASE("grouped and separate experts are the same ones") {
  const Pairing pairing = pair_up(
      checkpoint({"decoder.layers.0.mlp.experts.linear_fc1.weight1"}),
      checkpoint({"decoder.layers.0.mlp.experts.local_experts.1.linear_fc1.weight"}), NameMap::built_in());
  CHECK(pair_names(pairing) == Names{"decoder.layers.0.mlp.experts.linear_fc1.weight1"});
}

TEST_CASE("queries, keys and values are put together group by group") {
  // 4 heads of size 2 in 2 groups, hidden 1: a group is 4 query rows, 2 key rows, 2 value rows.
  Checkpoint hugging;
  hugging.entries.push_back(named("model.layers.0.self_attn.q_proj.weight", {8, 1}, 0));
  hugging.entries.push_back(named("model.layers.0.self_attn.k_proj.weight", {4, 1}, 100));
  hugging.entries.push_back(named("model.layers.0.self_attn.v_proj.weight", {4, 1}, 200));
  hugging.entries.push_back(named("model.layers.0.mlp.gate_proj.weight", {2, 1}, 1));
  hugging.entries.push_back(named("model.layers.0.mlp.up_proj.weight", {2, 1}, 11));
  Checkpoint megatron = checkpoint(
      {"decoder.layers.0.self_attention.linear_qkv.weight", "decoder.layers.0.mlp.linear_fc1.weight"});
  megatron.megatron_names = true;
  SUBCASE("with the size of a head") {
    megatron.architecture.head_size = 2;
  }
  SUBCASE("with the number of groups") {
    megatron.architecture.query_groups = 2;
  }
  SUBCASE("with what the other side says of itself") {
    hugging.architecture.query_groups = 2;
  }
  const Pairing pairing = pair_up(hugging, megatron, NameMap::built_in());
  REQUIRE(pairing.pairs.size() == 2);
  CHECK(pairing.pairs[0].name == "decoder.layers.0.mlp.linear_fc1.weight");
  CHECK(elements<float>(pairing.pairs[0].first.parameter) == std::vector<float>{1, 2, 11, 12});
  if (pairing.pairs[1].first.problem.empty()) {
    CHECK(elements<float>(pairing.pairs[1].first.parameter) ==
          std::vector<float>{0, 1, 2, 3, 100, 101, 200, 201, 4, 5, 6, 7, 102, 103, 202, 203});
  } else {
    CHECK(!hugging.architecture.query_groups);
    CHECK(pairing.pairs[1].first.problem.find("size of an attention head is unknown") != std::string::npos);
  }
}

TEST_CASE("a part that is missing leaves the others under their own names") {
  const Pairing pairing =
      pair_up(checkpoint({"model.layers.0.mlp.gate_proj.weight", "model.norm.weight"}),
              checkpoint({"decoder.layers.0.mlp.linear_fc1.weight", "decoder.final_layernorm.weight"}),
              NameMap::built_in());
  CHECK(pair_names(pairing) == Names{"decoder.final_layernorm.weight"});
  CHECK(pairing.only_first == Names{"model.layers.0.mlp.gate_proj.weight"});
}

TEST_CASE("maps of users, and what is wrong with them") {
  const test::ScratchDirectory scratch;
  const auto map = [&](const std::string& text) {
    scratch.put("map.yaml", text);
    return NameMap::from_file(scratch / "map.yaml");
  };
  const auto complaint = [&](const std::string& text) -> std::string {
    return test::message_of([&] { map(text); }, "");
  };
  const NameMap mine = map("- {to: 'new.{n}.w', from: 'old.block{n}.w'}\n- {to: 'b.{n}', from: 'a.{n}.x'}\n");
  const Pairing pairing = pair_up(checkpoint({"a.7.x", "c"}), checkpoint({"b.7", "c"}), mine);
  CHECK(pair_names(pairing) == Names{"b.7", "c"});
  CHECK(complaint("{}").find("a name map must be a list of rules") != std::string::npos);
  CHECK(complaint("- {to: a}").find("line 1: a rule needs 'to' and 'from'") != std::string::npos);
  CHECK(complaint("- {to: a, from: [b, c]}").find("need a 'join'") != std::string::npos);
  CHECK(complaint("- {to: a, from: [b, c], join: query_groups}").find("takes queries, keys and values") !=
        std::string::npos);
  CHECK(complaint("- {to: a, from: b, jion: rows}").find("unknown key 'jion'") != std::string::npos);
  CHECK(complaint("- [").find("line ") != std::string::npos);
  CHECK(complaint("- {to: a, from: []}").find("'from' must be") != std::string::npos);
}

}  // namespace msprobe::checkpoint::match_test
