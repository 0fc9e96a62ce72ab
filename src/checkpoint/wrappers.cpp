// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/wrappers.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "checkpoint/names.hpp"
#include "support/wrapper_names.hpp"

namespace msprobe::checkpoint {
namespace {

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

std::string without_wrappers(std::string_view name) {
  std::string rest;
  std::string_view before;
  for (const std::string_view part : components(name)) {
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
