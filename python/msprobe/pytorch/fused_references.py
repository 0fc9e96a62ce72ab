# SPDX-License-Identifier: Apache-2.0
"""References of fused NPU operators, written with PyTorch operations. `msprobe acc_check` uses them to check the
operators on any machine. Each takes the operator's arguments, of any types, and computes in these types.

An argument that no formula here covers raises NoReference with the reason.
"""

import torch
from torch.nn import functional

EVERYTHING = 2**31 - 1  # the number of positions that attention sees by default


class NoReference(Exception):
    """A call with these arguments cannot be judged."""


def npu_rms_norm(x, gamma, epsilon=1e-6):
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
    return x * scale * gamma, scale


def npu_swiglu(x, dim=-1):
    gate, value = x.chunk(2, dim)
    return functional.silu(gate) * value


def npu_rotary_mul(x, r1, r2, rotary_mode="half"):
    if rotary_mode != "half":
        raise NoReference(f"rotary_mode {rotary_mode} has no reference")
    first, second = x.chunk(2, -1)
    return r1 * x + r2 * torch.cat((-second, first), -1)


def npu_fast_gelu(x):
    size = x.abs()
    return x * torch.exp(0.851 * (x - size)) / (1 + torch.exp(-1.702 * size))


def npu_linear(x, weight, bias=None):
    return functional.linear(x, weight, bias)


def npu_scaled_masked_softmax(x, mask, scale=1.0, fixed_triu_mask=False):
    if fixed_triu_mask:
        mask = torch.ones(x.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax((x * scale).masked_fill(mask.bool(), -10000.0), -1)


def npu_confusion_transpose(x, perm, shape, transpose_first):
    return x.permute(*perm).reshape(shape) if transpose_first else x.reshape(shape).permute(*perm)


def npu_layer_norm_eval(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return functional.layer_norm(x, normalized_shape, weight, bias, eps)


def npu_group_norm_silu(x, gamma, beta, group, eps=1e-5):
    each = x.reshape(x.shape[0], group, -1)
    mean = each.mean(-1)
    scale = torch.rsqrt(each.var(-1, unbiased=False) + eps)
    return functional.silu(functional.group_norm(x, group, gamma, beta, eps)), mean, scale


def npu_mish(x):
    return functional.mish(x)


def npu_sort_v2(x, dim=-1, descending=False):
    return torch.sort(x, dim=dim, descending=descending).values


def npu_moe_gating_top_k_softmax(x, finished=None, k=1):
    share = torch.softmax(x, -1)
    chosen = torch.argsort(-x, dim=-1, stable=True)[..., :k]
    expert = chosen.to(torch.int32)
    if finished is not None:
        expert = expert.masked_fill(finished.bool().reshape(*expert.shape[:-1], 1), x.shape[-1])
    rows = x.shape[:-1].numel()
    place = torch.arange(rows * k, dtype=torch.int32).reshape(k, rows).t().reshape(expert.shape)
    return share.gather(-1, chosen), expert, place


def npu_apply_adam(beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, use_locking=False, use_nesterov=False,
                   out=None):
    value, first, second = state_of(out)
    first = first + (beta1 - 1) * (first - grad)
    second = second + (beta2 - 1) * (second - grad * grad)
    step = lr * (1 - beta2_power) ** 0.5 / (1 - beta1_power)
    moved = first * beta1 + (1 - beta1) * grad if use_nesterov else first
    return value - step * moved / (epsilon + second.sqrt()), first, second


def npu_apply_adam_w(beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, grad, max_grad_norm=None,
                     amsgrad=False, maximize=False, out=None):
    """beta1_power and beta2_power are the powers before this step."""
    value, first, second = state_of(out)
    if amsgrad and max_grad_norm is None:
        raise NoReference("amsgrad without max_grad_norm has no maximum to start from")
    if maximize:
        grad = -grad
    first = first * beta1 + (1 - beta1) * grad
    second = second * beta2 + (1 - beta2) * grad * grad
    largest = torch.maximum(max_grad_norm, second) if amsgrad else second
    size = (largest / (1 - beta2_power * beta2)).sqrt() + epsilon
    return value * (1 - lr * weight_decay) - lr * first / (1 - beta1_power * beta1) / size, first, second


def state_of(out):
    if not isinstance(out, (list, tuple)) or len(out) != 3:
        raise NoReference("without out=(var, m, v) there is no state to start from")
    return out


def heads_of(tensor, layout, heads):
    """Returns the tensor with axes in the order batch, heads, sequence, width."""
    if layout == "SBH":
        tensor = tensor.transpose(0, 1)
    if layout in ("BSH", "SBH"):
        tensor = tensor.reshape(*tensor.shape[:2], heads, -1)
    return tensor if layout == "BNSD" else tensor.transpose(1, 2)


def attention_mask(mask, mode, queries, keys, before, behind):
    """Returns the excluded positions; None if no position is excluded."""
    if mode not in (0, 1, 2, 3, 4):
        raise NoReference(f"sparse_mode {mode} has no reference")
    if mode == 4 and queries != keys:
        raise NoReference("sparse_mode 4 has no reference where query and key are of different lengths")
    if mask is not None and (mode < 2 or mask.shape[-2:] != (2048, 2048)):
        return mask.bool()
    everything = torch.ones(queries, keys, dtype=torch.bool)
    if mode == 1:
        return None
    if mode in (2, 3):
        return everything.triu(1 + (keys - queries if mode == 3 else 0))
    return everything.triu(min(behind, keys) + 1) | everything.tril(-min(before, queries) - 1)


def npu_fusion_attention(query, key, value, head_num, input_layout, pse=None, padding_mask=None, atten_mask=None,
                         scale=1.0, keep_prob=1.0, pre_tockens=EVERYTHING, next_tockens=EVERYTHING, inner_precise=0,
                         prefix=None, actual_seq_qlen=None, actual_seq_kvlen=None, sparse_mode=0,
                         gen_mask_parallel=True, sync=False):
    """Returns the first output, the attention itself."""
    if keep_prob < 1:
        raise NoReference("its result is random: keep_prob is below 1")
    if input_layout not in ("BSH", "SBH", "BSND", "BNSD"):
        raise NoReference(f"input_layout {input_layout} has no reference")
    if padding_mask is not None or prefix or actual_seq_qlen or actual_seq_kvlen:
        raise NoReference("padding_mask, prefix and actual_seq_qlen have no reference")
    result_type = query.dtype
    query = heads_of(query, input_layout, head_num).double()
    width = query.shape[-1]
    if input_layout in ("BSH", "SBH") and key.shape[-1] % width:
        raise NoReference("the heads of key and query differ in width")
    groups = key.shape[-1] // width if input_layout in ("BSH", "SBH") else None
    key, value = (heads_of(one, input_layout, groups).double() for one in (key, value))
    if key.shape[1] == 0 or query.shape[1] % key.shape[1]:
        raise NoReference(f"{query.shape[1]} heads of query are not a multiple of {key.shape[1]} of key")
    key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], 1) for one in (key, value))
    score = query @ key.transpose(-1, -2)
    if pse is not None:
        score = score + pse.double()
    score = score * scale
    mask = attention_mask(atten_mask, sparse_mode, query.shape[2], key.shape[2], pre_tockens, next_tockens)
    if mask is not None:
        score = score - 40000.0 * mask
    result = torch.softmax(score, -1) @ value
    if input_layout != "BNSD":
        result = result.transpose(1, 2)
    if input_layout in ("BSH", "SBH"):
        result = result.flatten(2)
    if input_layout == "SBH":
        result = result.transpose(0, 1)
    return result.to(result_type)


FUNCTIONS = {function.__name__: function for function in (
    npu_rms_norm, npu_swiglu, npu_rotary_mul, npu_fast_gelu, npu_linear, npu_scaled_masked_softmax,
    npu_confusion_transpose, npu_layer_norm_eval, npu_group_norm_silu, npu_mish, npu_sort_v2,
    npu_moe_gating_top_k_softmax, npu_apply_adam, npu_apply_adam_w, npu_fusion_attention)}
