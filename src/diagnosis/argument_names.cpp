// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/argument_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "dump/names.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

struct Signature {
  std::string_view call;
  std::string_view arguments;  // in their order
};

// Of PyTorch 2.13; the names and places are those of 1.13, as far as that has the functions. Sorted.
constexpr std::array<Signature, 104> kSignatures = {{
    {"Functional.adaptive_avg_pool2d", "input output_size"},
    {"Functional.alpha_dropout", "input p training inplace"},
    {"Functional.avg_pool1d", "input kernel_size stride padding ceil_mode count_include_pad"},
    {"Functional.avg_pool2d",
     "input kernel_size stride padding ceil_mode count_include_pad divisor_override"},
    {"Functional.avg_pool3d",
     "input kernel_size stride padding ceil_mode count_include_pad divisor_override"},
    {"Functional.batch_norm", "input running_mean running_var weight bias training momentum eps"},
    {"Functional.bilinear", "input1 input2 weight bias"},
    {"Functional.binary_cross_entropy", "input target weight size_average reduce reduction"},
    {"Functional.binary_cross_entropy_with_logits",
     "input target weight size_average reduce reduction pos_weight"},
    {"Functional.celu", "input alpha inplace"},
    {"Functional.conv1d", "input weight bias stride padding dilation groups"},
    {"Functional.conv2d", "input weight bias stride padding dilation groups"},
    {"Functional.conv3d", "input weight bias stride padding dilation groups"},
    {"Functional.conv_transpose1d", "input weight bias stride padding output_padding groups dilation"},
    {"Functional.conv_transpose2d", "input weight bias stride padding output_padding groups dilation"},
    {"Functional.conv_transpose3d", "input weight bias stride padding output_padding groups dilation"},
    {"Functional.cosine_embedding_loss", "input1 input2 target margin size_average reduce reduction"},
    {"Functional.cross_entropy",
     "input target weight size_average ignore_index reduce reduction label_smoothing"},
    {"Functional.ctc_loss", "log_probs targets input_lengths target_lengths blank reduction zero_infinity"},
    {"Functional.dropout", "input p training inplace"},
    {"Functional.dropout1d", "input p training inplace"},
    {"Functional.dropout2d", "input p training inplace"},
    {"Functional.dropout3d", "input p training inplace"},
    {"Functional.elu", "input alpha inplace"},
    {"Functional.embedding", "input weight padding_idx max_norm norm_type scale_grad_by_freq sparse"},
    {"Functional.embedding_bag",
     "input weight offsets max_norm norm_type scale_grad_by_freq mode sparse per_sample_weights "
     "include_last_offset padding_idx"},
    {"Functional.feature_alpha_dropout", "input p training inplace"},
    {"Functional.fold", "input output_size kernel_size dilation padding stride"},
    {"Functional.gaussian_nll_loss", "input target var full eps reduction"},
    {"Functional.glu", "input dim"},
    {"Functional.grid_sample", "input grid mode padding_mode align_corners"},
    {"Functional.group_norm", "input num_groups weight bias eps"},
    {"Functional.gumbel_softmax", "logits tau hard eps dim"},
    {"Functional.hardshrink", "input lambd"},
    {"Functional.hardswish", "input inplace"},
    {"Functional.hardtanh", "input min_val max_val inplace"},
    {"Functional.hinge_embedding_loss", "input target margin size_average reduce reduction"},
    {"Functional.huber_loss", "input target reduction delta weight"},
    {"Functional.instance_norm", "input running_mean running_var weight bias use_input_stats momentum eps"},
    {"Functional.interpolate", "input size scale_factor mode align_corners recompute_scale_factor antialias"},
    {"Functional.kl_div", "input target size_average reduce reduction log_target"},
    {"Functional.l1_loss", "input target size_average reduce reduction weight"},
    {"Functional.layer_norm", "input normalized_shape weight bias eps"},
    {"Functional.leaky_relu", "input negative_slope inplace"},
    {"Functional.linear", "input weight bias"},
    {"Functional.local_response_norm", "input size alpha beta k"},
    {"Functional.log_softmax", "input dim _stacklevel dtype"},
    {"Functional.lp_pool2d", "input norm_type kernel_size stride ceil_mode"},
    {"Functional.margin_ranking_loss", "input1 input2 target margin size_average reduce reduction"},
    {"Functional.mse_loss", "input target size_average reduce reduction weight"},
    {"Functional.multi_head_attention_forward",
     "query key value embed_dim_to_check num_heads in_proj_weight in_proj_bias bias_k bias_v add_zero_attn "
     "dropout_p out_proj_weight out_proj_bias training key_padding_mask need_weights attn_mask "
     "use_separate_proj_weight q_proj_weight k_proj_weight v_proj_weight static_k static_v "
     "average_attn_weights is_causal"},
    {"Functional.multi_margin_loss", "input target p margin weight size_average reduce reduction"},
    {"Functional.nll_loss", "input target weight size_average ignore_index reduce reduction"},
    {"Functional.normalize", "input p dim eps out"},
    {"Functional.one_hot", "tensor num_classes"},
    {"Functional.pad", "input pad mode value"},
    {"Functional.pixel_shuffle", "input upscale_factor"},
    {"Functional.poisson_nll_loss", "input target log_input full size_average eps reduce reduction"},
    {"Functional.prelu", "input weight"},
    {"Functional.relu", "input inplace"},
    {"Functional.relu6", "input inplace"},
    {"Functional.rms_norm", "input normalized_shape weight eps"},
    {"Functional.rrelu", "input lower upper training inplace"},
    {"Functional.scaled_dot_product_attention", "query key value attn_mask dropout_p is_causal"},
    {"Functional.selu", "input inplace"},
    {"Functional.silu", "input inplace"},
    {"Functional.smooth_l1_loss", "input target size_average reduce reduction beta"},
    {"Functional.soft_margin_loss", "input target size_average reduce reduction"},
    {"Functional.softmax", "input dim _stacklevel dtype"},
    {"Functional.softmin", "input dim _stacklevel dtype"},
    {"Functional.softplus", "input beta threshold"},
    {"Functional.softshrink", "input lambd"},
    {"Functional.triplet_margin_loss",
     "anchor positive negative margin p eps swap size_average reduce reduction"},
    {"Functional.unfold", "input kernel_size dilation padding stride"},
    {"Tensor.clamp", "input min max"},
    {"Tensor.clamp_", "input min max"},
    {"Tensor.clip", "input min max"},
    {"Tensor.cumsum", "input dim"},
    {"Tensor.flip", "input dims"},
    {"Tensor.lerp", "input end weight"},
    {"Tensor.lerp_", "input end weight"},
    {"Tensor.masked_fill", "input mask value"},
    {"Tensor.masked_fill_", "input mask value"},
    {"Tensor.roll", "input shifts dims"},
    {"Tensor.topk", "input k dim largest sorted"},
    {"Tensor.tril", "input diagonal"},
    {"Tensor.tril_", "input diagonal"},
    {"Tensor.triu", "input diagonal"},
    {"Tensor.triu_", "input diagonal"},
    {"Torch.clamp", "input min max"},
    {"Torch.clamp_", "input min max"},
    {"Torch.clip", "input min max"},
    {"Torch.cumsum", "input dim"},
    {"Torch.flip", "input dims"},
    {"Torch.lerp", "input end weight"},
    {"Torch.lerp_", "input end weight"},
    {"Torch.masked_fill", "input mask value"},
    {"Torch.masked_fill_", "input mask value"},
    {"Torch.roll", "input shifts dims"},
    {"Torch.topk", "input k dim largest sorted"},
    {"Torch.tril", "input diagonal"},
    {"Torch.tril_", "input diagonal"},
    {"Torch.triu", "input diagonal"},
    {"Torch.triu_", "input diagonal"},
}};

}  // namespace

std::string argument_text(const dump::Side& side, std::string_view entry, std::string_view place) {
  constexpr std::string_view kInput = "input.";
  if (!place.starts_with(kInput)) return std::string(place);
  const std::string_view which = place.substr(kInput.size());
  const auto number = whole_number<std::size_t>(which);
  if (!number) return std::string(which.find('.') == std::string_view::npos ? which : place);
  const auto parsed = dump::parse_entry_name(entry);
  if (!parsed || side.header.is_mindspore()) return std::string(place);
  const auto found = std::ranges::lower_bound(kSignatures, parsed->base, {}, &Signature::call);
  if (found == std::end(kSignatures) || found->call != parsed->base) return std::string(place);
  const std::vector<std::string_view> names = split(found->arguments, " ");
  if (*number >= names.size()) return std::string(place);
  return fmt::format("{} ({})", names[*number], place);
}

}  // namespace msprobe::diagnosis
