// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "support/ascii.hpp"
#include "support/text.hpp"
#include "support/wrapper_names.hpp"

namespace msprobe::checkpoint {
namespace {

using Parts = std::vector<std::string_view>;

std::string join(const Parts& parts) {
  return fmt::format("{}", fmt::join(parts, "."));
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// Accepts no leading zeros: otherwise thousands of different names could mean the same.
std::optional<std::int64_t> number(std::string_view text) {
  if (text.starts_with('-') || (text.starts_with('0') && text.size() > 1)) return {};
  return whole_number<std::int64_t>(text);
}

// Names of components that changed over Megatron's versions.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kRenamed = {{
    {"input_norm", "input_layernorm"},
    {"query_key_value", "linear_qkv"},
    {"dense", "linear_proj"},
    {"post_attention_norm", "pre_mlp_layernorm"},
    {"post_attention_layernorm", "pre_mlp_layernorm"},
    {"dense_h_to_4h", "linear_fc1"},
    {"dense_4h_to_h", "linear_fc2"},
    {"final_norm", "final_layernorm"},
    {"word_embeddings_for_head", "output_layer"},
}};

constexpr std::string_view kFusedNorm = "layer_norm_";

/// "weight12" -> ("weight", 12).
std::optional<std::pair<std::string_view, std::int64_t>> numbered_leaf(std::string_view leaf) {
  for (const std::string_view kind : {"weight", "bias"}) {
    if (!leaf.starts_with(kind)) continue;
    if (const auto index = number(leaf.substr(kind.size()))) return std::pair{kind, *index};
  }
  return {};
}

std::size_t find_component(const Parts& parts, std::string_view wanted) {
  return static_cast<std::size_t>(std::find(parts.begin(), parts.end(), wanted) - parts.begin());
}

/// The place of the expert's number: in a separate component, or at the end of the last one.
struct ExpertPlace {
  std::size_t component = 0;
  bool in_leaf = false;
  std::int64_t index = 0;
};

std::optional<ExpertPlace> expert_place(const Parts& parts) {
  const std::size_t experts = find_component(parts, "experts");
  if (experts + 1 >= parts.size()) return {};
  if (parts[experts + 1] == "local_experts" && experts + 2 < parts.size()) {
    if (const auto index = number(parts[experts + 2])) return ExpertPlace{experts + 2, false, *index};
    return {};
  }
  if (experts + 3 == parts.size() && parts[experts + 1].starts_with("linear_fc")) {
    if (const auto leaf = numbered_leaf(parts.back())) {
      return ExpertPlace{parts.size() - 1, true, leaf->second};
    }
  }
  return {};
}

/// True if a component for layers is followed by a number. It is called often, so it builds no list of
/// components.
bool has_layers(std::string_view name) {
  for (const std::string_view word : {"layers.", "layer.", "h.", "blocks."}) {
    for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
      const std::size_t behind = at + word.size();
      const bool starts = at == 0 || name[at - 1] == '.';
      if (starts && behind < name.size() && name[behind] >= '0' && name[behind] <= '9') return true;
    }
  }
  return false;
}

/// 0: embeddings, 1: layers, 2: the rest.
int section(std::string_view name) {
  if (has_layers(name)) return 1;
  return name.find("embed") != std::string_view::npos || name.find("wte") != std::string_view::npos ? 0 : 2;
}

std::string_view take_digits(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && text[length] >= '0' && text[length] <= '9') ++length;
  return text.substr(0, length);
}

int compare_digits(std::string_view a, std::string_view b) {
  const auto significant = [](std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
  };
  const std::string_view x = significant(a);
  const std::string_view y = significant(b);
  if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
  return x.compare(y);
}

bool natural_less(std::string_view a, std::string_view b) {
  std::string_view x = a;
  std::string_view y = b;
  while (!x.empty() && !y.empty()) {
    const std::string_view n = take_digits(x);
    const std::string_view m = take_digits(y);
    if (!n.empty() && !m.empty()) {
      if (const int order = compare_digits(n, m); order != 0) return order < 0;
      x.remove_prefix(n.size());
      y.remove_prefix(m.size());
      continue;
    }
    if (x[0] != y[0]) return static_cast<unsigned char>(x[0]) < static_cast<unsigned char>(y[0]);
    x.remove_prefix(1);
    y.remove_prefix(1);
  }
  if (x.empty() != y.empty()) return x.empty();
  return a < b;  // 01 and 1
}

// Components that programs put before the names of their model, alone or in sequence. The last lines are the
// base_model_prefix of transformers, which a model with a head has and the base model itself does not have.
constexpr std::array<std::string_view, 20> kHeads = {
    "model",       "module",  "state_dict", "model_state_dict", "app",        "network",
    "net",         "actor",   "policy",     "base_model",       "checkpoint",  //
    "transformer", "bert",    "roberta",    "distilbert",       "vit",        "electra",
    "albert",      "deberta", "gpt_neox"};

constexpr std::size_t kMostWrappers = 6;

/// True for the members in which a pickled module of PyTorch keeps its parts, and for the layer that an
/// adapter of peft wraps.
bool is_member_table(std::string_view part) {
  return part == "_modules" || part == "_parameters" || part == "_buffers" || part == "base_layer";
}

/// peft puts the name of the adapter after the part: `lora_A.default.weight`.
bool is_default_adapter(std::string_view part, std::string_view before) {
  return part == "default" && (before.starts_with("lora_") || before == "modules_to_save");
}

bool has_head(std::string_view name, std::string_view head) {
  return name.size() > head.size() + 1 && name.starts_with(head) && name[head.size()] == '.';
}

}  // namespace

std::string megatron_name(std::string_view raw, bool has_decoder) {
  Parts parts = split(raw, ".");
  // Leading and trailing dots are dropped, as in the Python tool.
  while (!parts.empty() && parts.front().empty()) parts.erase(parts.begin());
  while (!parts.empty() && parts.back().empty()) parts.pop_back();
  const auto is_head = [&] {
    return is_one_of(parts.front(), {"module", "language_model", "_orig_mod"}) ||
           (parts.front() == "model" && parts[1] == "module");
  };
  while (parts.size() > 1 && is_head()) parts.erase(parts.begin());
  parts.erase(std::remove(parts.begin(), parts.end(), "language_model"), parts.end());
  if (parts.empty()) return std::string(raw);
  const bool old_head = parts.front() == "encoder" || parts.front() == "transformer";
  if (old_head && !has_decoder && parts.size() > 1) parts.front() = "decoder";
  Parts mapped;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const auto renamed = std::ranges::find_if(kRenamed, [&](const auto& rule) { return rule.first == part; });
    if (renamed != kRenamed.end() && i + 1 < parts.size()) {
      mapped.push_back(renamed->second);
      continue;
    }
    if (part == "local_experts" && !mapped.empty() && mapped.back() == "mlp") mapped.push_back("experts");
    mapped.push_back(part);
  }
  // A norm that is fused into the projection that follows it.
  if (mapped.size() > 2 && mapped.back().starts_with(kFusedNorm)) {
    const std::string_view owner = mapped[mapped.size() - 3];
    const std::string_view projection = mapped[mapped.size() - 2];
    const std::string_view leaf = mapped.back().substr(kFusedNorm.size());
    std::string_view norm;
    if (owner == "self_attention" && projection == "linear_qkv") norm = "input_layernorm";
    if (owner == "mlp" && projection == "linear_fc1") norm = "pre_mlp_layernorm";
    if (!norm.empty()) {
      mapped.resize(mapped.size() - 3);
      mapped.push_back(norm);
      mapped.push_back(leaf);
    }
  }
  return join(mapped);
}

bool is_extra_state(std::string_view name) {
  const std::string_view last = split(name, ".").back();
  return last.starts_with("_extra_state");
}

bool is_expert(std::string_view name) {
  const Parts parts = split(name, ".");
  return find_component(parts, "experts") < parts.size();
}

std::optional<std::int64_t> layer_of(std::string_view name) {
  const Parts parts = split(name, ".");
  if (parts.size() < 4 || parts[1] != "layers" || !is_one_of(parts[0], {"decoder", "encoder"})) return {};
  return number(parts[2]);
}

std::string with_layer(std::string_view name, std::int64_t layer) {
  Parts parts = split(name, ".");
  const std::string digits = std::to_string(layer);
  parts[2] = digits;
  return join(parts);
}

std::optional<std::int64_t> expert_of(std::string_view name) {
  const auto place = expert_place(split(name, "."));
  return place ? std::optional(place->index) : std::nullopt;
}

std::string with_expert(std::string_view name, std::int64_t expert) {
  Parts parts = split(name, ".");
  const auto place = expert_place(parts);
  if (!place) return std::string(name);
  std::string text = std::to_string(expert);
  if (place->in_leaf) text = std::string(numbered_leaf(parts.back())->first) + text;
  parts[place->component] = text;
  return join(parts);
}

std::string expert_key(std::string_view name) {
  Parts parts = split(name, ".");
  const auto place = expert_place(parts);
  if (!place || !place->in_leaf) return std::string(name);
  const std::string index = std::to_string(place->index);
  parts.back() = numbered_leaf(parts.back())->first;
  const std::array<std::string_view, 2> inserted = {"local_experts", index};
  parts.insert(parts.end() - 2, inserted.begin(), inserted.end());
  return join(parts);
}

MergeKind merge_kind(std::string_view name) {
  const Parts parts = split(name, ".");
  if (parts.size() < 2) return MergeKind::replicated;
  const std::string_view module = parts[parts.size() - 2];
  const std::string_view leaf = parts.back();
  if (module == "experts" && leaf == "weight1") return MergeKind::experts_in;
  if (module == "experts" && leaf == "weight2") return MergeKind::experts_out;
  const bool numbered = numbered_leaf(leaf).has_value();
  const bool weight = leaf == "weight" || (numbered && leaf.starts_with("weight"));
  const bool bias = leaf == "bias" || (numbered && leaf.starts_with("bias"));
  if (!weight && !bias) return MergeKind::replicated;
  if (module == "linear_fc1") return MergeKind::fc1;
  if (is_one_of(module, {"linear_qkv", "linear_q_up_proj", "linear_kv_up_proj", "linear_q_proj", "linear_q",
                         "linear_kv", "eh_proj", "output_layer"})) {
    return MergeKind::rows;
  }
  if (module == "word_embeddings" && weight) return MergeKind::rows;
  if (weight && is_one_of(module, {"linear_fc2", "linear_proj"})) return MergeKind::columns;
  return MergeKind::replicated;
}

bool is_known_replica(std::string_view name) {
  const Parts parts = split(name, ".");
  const std::string_view module = parts.size() < 2 ? std::string_view() : parts[parts.size() - 2];
  return module.ends_with("norm") || module.ends_with("_down_proj") ||
         is_one_of(module, {"router", "position_embeddings", "linear_proj", "linear_fc2"}) ||
         parts.back().starts_with(kFusedNorm);
}

bool is_computed_buffer(std::string_view name) {
  // Tables of positions and masks, including those that older versions wrote.
  return is_extra_state(name) ||
         is_one_of(split(name, ".").back(), {"inv_freq", "position_ids", "masked_bias"}) ||
         name.ends_with(".attn.bias") || name.ends_with(".rope.freqs") || name == "rope_freqs.weight";
}

bool is_vocabulary(std::string_view name) {
  return name.ends_with("word_embeddings.weight") || name.ends_with("output_layer.weight") ||
         name.ends_with("output_layer.bias") || name.ends_with("embed_tokens.weight") ||
         name.ends_with("lm_head.weight") || name.ends_with("wte.weight") ||
         name.ends_with("predictions.decoder.weight");
}

bool is_training_state(std::string_view name) {
  const Parts parts = split(name, ".");
  // A program may wrap all that it saves in a record.
  std::size_t at = 0;
  while (at + 1 < parts.size() && is_one_of(parts[at], {"app", "state", "checkpoint", "trainer"})) ++at;
  const std::string_view head = parts[at];
  if (head.starts_with("chained_") && number(head.substr(8))) return true;
  if (head.ends_with("rng_state") || head.ends_with("rng_states") || head.ends_with("rng_state_all"))
    return true;
  if (at + 1 == parts.size() && is_one_of(head, {"loss", "best_loss", "val_loss", "train_loss"})) return true;
  return is_one_of(head, {"optimizer",
                          "optimizers",
                          "optim",
                          "optimizer_state_dict",
                          "optimizer_states",
                          "optimizer_state",
                          "optim_state",
                          "optim_state_dict",
                          "optimizer_state_dicts",
                          "opt_state",
                          "opt_param_scheduler",
                          "scheduler",
                          "scheduler_state_dict",
                          "lr_scheduler",
                          "lr_schedulers",
                          "rng",
                          "random_state",
                          "random_states",
                          "adam_m",
                          "adam_v",
                          "moment1",
                          "moment2",
                          "moments",
                          "accum",
                          "callbacks",
                          "loops",
                          "grad_scaler",
                          "scaler_state_dict",
                          "amp_scaler",
                          "loss_scaler",
                          "hyper_parameters",
                          "train_state"});
}

bool is_container(std::string_view head) {
  return is_one_of(head, {"model", "module", "state_dict", "model_state_dict", "net", "network"});
}

bool is_beside_model(std::string_view name) {
  return is_one_of(split(name, ".").front(),
                   {"scaler", "loss", "losses", "amp", "epoch", "step", "global_step", "iteration",
                    "dataloader", "sampler", "metrics", "history", "best"});
}

bool in_model_order(std::string_view a, std::string_view b) {
  const int x = section(a);
  const int y = section(b);
  if (x != y) return x < y;
  return natural_less(a, b);
}

std::string without_wrappers(std::string_view name) {
  std::string rest;
  std::string_view before;
  for (const std::string_view part : split(name, ".")) {
    const bool drop = is_wrapper_component(part) || is_member_table(part) || is_default_adapter(part, before);
    before = part;
    if (drop) continue;
    if (!rest.empty()) rest += '.';
    rest += part;
  }
  return rest.empty() ? std::string(name) : rest;
}

std::string without_heads(std::string name, const Heads& heads) {
  for (const std::string_view head : heads) {
    if (has_head(name, head)) name.erase(0, head.size() + 1);
  }
  return name;
}

std::vector<Heads> possible_heads(const std::vector<std::string>& names) {
  std::vector<Heads> all = {{}};
  std::vector<std::string> left = names;
  Heads chain;
  while (chain.size() < kMostWrappers) {
    std::string_view most;
    std::ptrdiff_t count = 0;
    for (const std::string_view head : kHeads) {
      const auto here =
          std::ranges::count_if(left, [&](const std::string& name) { return has_head(name, head); });
      if (here > 0 && chain.empty()) all.push_back({head});
      if (here > count) {
        count = here;
        most = head;
      }
    }
    if (count == 0) break;
    chain.push_back(most);
    for (std::string& name : left) name = without_heads(std::move(name), {most});
    if (chain.size() > 1) all.push_back(chain);
  }
  return all;
}

}  // namespace msprobe::checkpoint
