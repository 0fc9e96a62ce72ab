// SPDX-License-Identifier: Apache-2.0
#include "pairing/consistent.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unit/compare/dumps.hpp"

namespace msprobe::compare_consistent_test {

using namespace compare;  // helpers of tests

using namespace msprobe;
using namespace msprobe::pairing;
using Lines = std::vector<std::string>;

namespace {

constexpr const char* kTraining = "Module.0.module._fsdp_wrapped_module.model.";
constexpr const char* kLayer = "Module.0.module._fsdp_wrapped_module.model.layers.0._fsdp_wrapped_module.";
constexpr const char* kInference = "Module.model.layers.0.";

/// A module with one output of this value.
std::string module(const std::string& name, const std::string& value = "1",
                   const std::string& way = "forward.0") {
  return "\"" + name + "." + way + R"(": {"output": [)" + tensor_json(value) + "]}";
}

std::string members(const Lines& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

struct Matched {
  Side target;
  Side golden;
  Matching matching;

  /// "a+b = c" by the last parts of the modules; `-` where a side has nothing.
  Lines rows() const {
    Lines out;
    for (const Pair& pair : matching.pairs)
      out.push_back(text(target, pair.target) + " = " + text(golden, pair.golden));
    return out;
  }
  static std::string text(const Side& side, std::uint32_t index) {
    if (index == kUnmatched) return "-";
    const auto merged = side.merged.find(index);
    const Lines none;
    std::string out;
    for (const std::uint32_t part :
         merged == side.merged.end() ? std::vector<std::uint32_t>{index} : merged->second) {
      std::string name(side.text(side.apis[side.items[part].api].name));
      const std::size_t way = name.rfind("ward");
      name = name.substr(0, name.rfind('.', way));
      name = name.substr(0, name.rfind('.'));
      out += (out.empty() ? "" : "+") + name.substr(name.rfind('.') + 1);
    }
    return out;
  }
};

Matched match(const Lines& target, const Lines& golden, Backend backend = Backend::fsdp) {
  Matched result{side_of(members(target)), side_of(members(golden)), {}};
  result.matching = match_consistent(result.target, result.golden, backend);
  return result;
}

}  // namespace

TEST_CASE("consistent: modules pair by layer and mapped name, fsdp's parts with what inference fuses") {
  const std::string layer = kLayer;
  const Matched matched =
      match({module(std::string(kTraining) + "embed_tokens.Embedding"),
             module(layer + "self_attn.q_proj.Linear"), module(layer + "self_attn.k_proj.Linear"),
             module(layer + "self_attn.v_proj.Linear"), module(layer + "self_attn.o_proj.Linear")},
            {module("Module.model.embed_tokens.VocabParallelEmbedding"),
             module(std::string(kInference) + "self_attn.qkv_proj.QKVParallelLinear"),
             module(std::string(kInference) + "self_attn.attn.Attention"),
             module(std::string(kInference) + "self_attn.o_proj.RowParallelLinear"),
             module("Module.model.layers.1.self_attn.o_proj.RowParallelLinear")});
  CHECK(matched.rows() == Lines{"embed_tokens = embed_tokens", "q_proj+k_proj+v_proj = qkv_proj", "- = attn",
                                "o_proj = o_proj", "- = o_proj"});
  CHECK(matched.matching.golden_only == 2);
  CHECK_FALSE(matched.matching.conflict);
}

TEST_CASE("consistent: megatron's names on both sides, inference may have the parts") {
  const std::string layer = "Module.0.module.module.decoder.layers.0.";
  const Matched matched =
      match({module("Module.0.module.module.embedding.word_embeddings.VocabParallelEmbedding"),
             module(layer + "self_attention.linear_proj.RowParallelLinear"),
             module(layer + "mlp.linear_fc1.ColumnParallelLinear")},
            {module("Module.model.embed_tokens.VocabParallelEmbedding"),
             module(std::string(kInference) + "self_attn.o_proj.RowParallelLinear"),
             module(std::string(kInference) + "mlp.gate_up_proj.A"),
             module(std::string(kInference) + "mlp.gate_up_proj.B")},
            Backend::megatron);
  CHECK(matched.rows() == Lines{"word_embeddings = embed_tokens", "linear_proj = o_proj",
                                "linear_fc1 = gate_up_proj+gate_up_proj"});
}

TEST_CASE(
    "consistent: a merged item has the largest maximum, the smallest minimum, the other numbers in a row") {
  const std::string layer = kLayer;
  const Matched matched =
      match({module(layer + "mlp.gate_proj.Linear", "2.5"), module(layer + "mlp.up_proj.Linear", "-1")},
            {module(std::string(kInference) + "mlp.gate_up_proj.M")});
  REQUIRE(matched.rows() == Lines{"gate_proj+up_proj = gate_up_proj"});
  const Item& item = matched.target.items[matched.matching.pairs[0].target];
  const auto text = [&](Statistic which) { return to_text(item.statistics[which], matched.target.pool); };
  CHECK(text(kMax) == "2.5");
  CHECK(text(kMin) == "-1");
  CHECK(text(kMean) == "2.5;-1");
  CHECK(text(kNorm) == "2.5;-1");
  CHECK(matched.target.text(item.shape) == "[2, 3];[2, 3]");
  CHECK(matched.target.name(item) == layer + "mlp.gate_proj.Linear.forward.0.output.0;  " + layer +
                                         "mlp.up_proj.Linear.forward.0.output.0");
}

TEST_CASE("consistent: NaN in one part is NaN in the whole") {
  const std::string layer = kLayer;
  for (const char* first : {"NaN", "1"}) {
    const std::string second = std::string(first) == "1" ? "NaN" : "1";
    const Matched matched =
        match({module(layer + "mlp.gate_proj.Linear", first), module(layer + "mlp.up_proj.Linear", second)},
              {module(std::string(kInference) + "mlp.gate_up_proj.M")});
    const Item& item = matched.target.items[matched.matching.pairs[0].target];
    CHECK(to_text(item.statistics[kMax], matched.target.pool) == "Nan");
    CHECK(to_text(item.statistics[kMin], matched.target.pool) == "Nan");
  }
}

TEST_CASE(
    "consistent: training counts from the embedding to the model's backward pass, calls by appearance") {
  const std::string embedding = std::string(kTraining) + "embed_tokens.Embedding";
  const std::string norm = std::string(kTraining) + "norm.Norm";
  const std::string model = std::string(kTraining) + "Qwen2Model";
  const Matched matched =
      match({module(norm, "1", "forward.3"), module(model, "1", "backward.0"), module(norm, "1", "forward.4"),
             module(embedding, "1", "forward.7"), module(norm, "1", "forward.9")},
            {module("Module.model.norm.Norm", "1", "forward.0"),
             module("Module.model.embed_tokens.E", "1", "forward.0"),
             module("Module.model.norm.Norm", "1", "forward.1")});
  CHECK(matched.rows() == Lines{"norm = norm", "embed_tokens = embed_tokens", "norm = norm"});
  REQUIRE(matched.matching.pairs.size() == 3);
  CHECK(matched.target.name(matched.target.items[matched.matching.pairs[2].target]) ==
        norm + ".forward.9.output.0");
}

TEST_CASE("consistent: orders that contradict each other keep the target's, Python's rules refuse them") {
  const Lines target = {module(std::string(kTraining) + "a.A"), module(std::string(kTraining) + "b.B")};
  const Lines golden = {module("Module.model.b.B"), module("Module.model.c.C"), module("Module.model.a.A")};
  const Matched matched = match(target, golden);
  CHECK(matched.matching.conflict);
  CHECK(matched.rows() == Lines{"a = a", "b = b", "- = c"});
}

TEST_CASE("consistent: only what is called so is a backend") {
  CHECK(backend_from_name("fsdp") == Backend::fsdp);
  CHECK(backend_from_name("megatron") == Backend::megatron);
  CHECK_FALSE(backend_from_name("FSDP"));
  CHECK_FALSE(backend_from_name(""));
}

}  // namespace msprobe::compare_consistent_test
