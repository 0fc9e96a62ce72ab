// SPDX-License-Identifier: Apache-2.0
#include "series/quantities.hpp"

#include <algorithm>

namespace msprobe::series {
namespace {

constexpr std::string_view kAttention[] = {"entropy", "softmax_max"};
constexpr std::string_view kLinear[] = {"sr", "kernel_norm"};
constexpr std::string_view kRouterWeight[] = {"router_weight_similarity"};
constexpr std::string_view kRouterLogit[] = {"per_token_expert_entropy"};

constexpr Quantity kQuantities[] = {
    {"actv", "actv", "actv", true, true},
    {"actv_grad", "actv_grad", "actv_grad", true, false},
    {"grad_unreduced", "grad_unreduced", "acc_grad"},
    {"grad_reduced", "grad_reduced", "post_grad"},
    {"exp_avg", "exp_avg", "exp_avg"},
    {"exp_avg_sq", "exp_avg_sq", "exp_avg_sq"},
    {"param_origin", "param_origin", "param_origin"},
    {"param_updated", "param_updated", "param_updated"},
    {"mg_direction", "other", "mg_direction"},
    {"other", "other", "other"},
    {"comm", "comm", "comm"},
    {"update", "update", "update"},
    {"ratio", "ratio", "ratio"},
    {"attention_hook", "attention_hook", "attention_hook", true, false, kAttention},
    {"linear_hook", "linear_hook", "linear_hook", false, false, kLinear},
    {"moe_router_weight_hook", "moe_router_weight_hook", "moe_router_weight_hook", false, false,
     kRouterWeight},
    {"moe_router_logit_hook", "moe_router_logit_hook", "moe_router_logit_hook", true, false, kRouterLogit},
};

}  // namespace

const Quantity* find_quantity(std::string_view name) {
  const auto* found = std::find_if(std::begin(kQuantities), std::end(kQuantities),
                                   [&](const Quantity& one) { return one.name == name; });
  return found == std::end(kQuantities) ? nullptr : found;
}

}  // namespace msprobe::series
