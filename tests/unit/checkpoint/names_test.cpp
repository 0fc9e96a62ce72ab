// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/names.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "unit/support/source_root.hpp"

namespace msprobe::checkpoint::names_test {

TEST_CASE("names of Megatron's versions, compared with the names that the Python tool makes") {
  std::ifstream file(test::in_source("tests/data/golden/ckpt/name_and_merge_rules.json"));
  const nlohmann::json rules = nlohmann::json::parse(file);
  REQUIRE(rules["map"].size() == 26);
  // Where the Python tool is wrong or stops half-way.
  const std::map<std::string, std::string> corrected = {
      {"module.decoder.layers.0.x", "decoder.layers.0.x"},
      {".lead", "lead"},
      {"decoder.layers.0.mlp.linear_fc1.layer_norm_weight", "decoder.layers.0.pre_mlp_layernorm.weight"},
      {"transformer.layers.0.post_attention_layernorm.weight", "decoder.layers.0.pre_mlp_layernorm.weight"},
      {"vision_encoder.layers.2.dense_4h_to_h.bias", "vision_encoder.layers.2.linear_fc2.bias"},
      {"encoder.encoder.layers.0.dense.weight", "decoder.encoder.layers.0.linear_proj.weight"},
  };
  for (const auto& [raw, python] : rules["map"].items()) {
    const auto found = corrected.find(raw);
    CHECK(megatron_name(raw, false) ==
          (found == corrected.end() ? python.get<std::string>() : found->second));
  }
}

TEST_CASE("an encoder beside a decoder keeps its name") {
  CHECK(megatron_name("encoder.layers.1.mlp.linear_fc1.weight", true) ==
        "encoder.layers.1.mlp.linear_fc1.weight");
  CHECK(megatron_name("encoder.layers.1.mlp.linear_fc1.weight", false) ==
        "decoder.layers.1.mlp.linear_fc1.weight");
  // A parameter may be called like an old component.
  CHECK(megatron_name("head.dense", false) == "head.dense");
}

TEST_CASE("layers and experts are renumbered where their number stands") {
  CHECK(layer_of("decoder.layers.12.mlp.linear_fc1.weight") == 12);
  CHECK(!layer_of("mtp.layers.0.enorm.weight"));
  CHECK(!layer_of("decoder.layers.weight"));
  CHECK(!layer_of("decoder.layers.012.mlp.linear_fc1.weight"));  // another name than with 12
  CHECK(layer_of("decoder.layers.0.mlp.linear_fc1.weight") == 0);
  CHECK(!layer_of("decoder.layers.99999999999999999999.mlp.x"));
  CHECK(with_layer("decoder.layers.1.adapter.layers.1.w", 7) == "decoder.layers.7.adapter.layers.1.w");
  const std::string local = "decoder.layers.0.mlp.experts.local_experts.3.linear_fc1.weight";
  const std::string grouped = "decoder.layers.0.mlp.experts.linear_fc1.weight3";
  CHECK(expert_of(local) == 3);
  CHECK(with_expert(local, 11) == "decoder.layers.0.mlp.experts.local_experts.11.linear_fc1.weight");
  CHECK(expert_of(grouped) == 3);
  CHECK(with_expert(grouped, 11) == "decoder.layers.0.mlp.experts.linear_fc1.weight11");
  CHECK(expert_key(grouped) == local);
  CHECK(expert_key(local) == local);
  CHECK(expert_key("decoder.layers.0.mlp.experts.linear_fc2.bias0") ==
        "decoder.layers.0.mlp.experts.local_experts.0.linear_fc2.bias");
  for (const char* none :
       {"decoder.layers.0.mlp.shared_experts.linear_fc1.weight", "decoder.layers.0.mlp.experts.weight1",
        "decoder.layers.0.mlp.linear_fc1.weight3"}) {
    CHECK(!expert_of(none));
    CHECK(expert_key(none) == none);
  }
  CHECK(is_expert("decoder.layers.0.mlp.experts.weight1"));
  CHECK(!is_expert("decoder.layers.0.mlp.shared_experts.linear_fc1.weight"));
}

TEST_CASE("how slices are merged, by name") {
  const std::map<std::string, MergeKind> kinds = {
      {"x.linear_qkv.weight", MergeKind::rows},
      {"x.linear_qkv.bias", MergeKind::rows},
      {"x.linear_fc1.weight", MergeKind::fc1},
      {"x.linear_fc1.bias", MergeKind::fc1},
      {"x.experts.linear_fc1.weight12", MergeKind::fc1},
      {"x.linear_fc1.layer_norm_weight", MergeKind::replicated},
      {"embedding.word_embeddings.weight", MergeKind::rows},
      {"output_layer.weight", MergeKind::rows},
      {"output_layer.bias", MergeKind::rows},
      {"x.linear_proj.weight", MergeKind::columns},
      {"x.linear_proj.bias", MergeKind::replicated},
      {"x.linear_fc2.weight", MergeKind::columns},
      {"x.experts.linear_fc2.weight0", MergeKind::columns},
      {"x.linear_fc2.bias", MergeKind::replicated},
      {"embedding.position_embeddings.weight", MergeKind::replicated},
      {"x.linear_q_up_proj.weight", MergeKind::rows},
      {"x.linear_kv_up_proj.weight", MergeKind::rows},
      {"x.linear_q_down_proj.weight", MergeKind::replicated},
      {"mtp.layers.0.eh_proj.weight", MergeKind::rows},
      {"x.experts.weight1", MergeKind::experts_in},
      {"x.experts.weight2", MergeKind::experts_out},
      {"x.router.weight", MergeKind::replicated},
      {"x.input_layernorm.weight", MergeKind::replicated},
      {"bias", MergeKind::replicated},
  };
  for (const auto& [name, kind] : kinds) {
    CAPTURE(name);
    CHECK(merge_kind(name) == kind);
  }
}

TEST_CASE("reports follow the model: embeddings, layers by number, the rest") {
  std::vector<std::string> names = {"output_layer.weight",
                                    "decoder.layers.10.w",
                                    "decoder.layers.2.w",
                                    "decoder.final_norm.weight",
                                    "embedding.word_embeddings.weight",
                                    "decoder.layers.2.v",
                                    "decoder.layers.02.v"};
  std::sort(names.begin(), names.end(), in_model_order);
  CHECK(names == std::vector<std::string>{"embedding.word_embeddings.weight", "decoder.layers.02.v",
                                          "decoder.layers.2.v", "decoder.layers.2.w", "decoder.layers.10.w",
                                          "decoder.final_norm.weight", "output_layer.weight"});
}

TEST_CASE("training state is known by the head of its name") {
  for (const char* state :
       {"optimizer.state.0.exp_avg", "chained_1.optimizer.x", "adam_m.backbone.w", "rng_state"}) {
    CHECK(is_training_state(state));
  }
  for (const char* weight : {"model.optimizer.w", "chained_x.w", "backbone.adam_m"})
    CHECK(!is_training_state(weight));
}

}  // namespace msprobe::checkpoint::names_test
