# SPDX-License-Identifier: Apache-2.0
"""The perturbations, by `pert_mode`: of the first floating-point tensor among the inputs, or of all of them."""

import torch

from msprobe.core.free_benchmark import limits

from . import structures

NOISE = {getattr(torch, name): noise for name, noise in limits.NOISE.items()}

_HALVES = (torch.float16, torch.bfloat16)
_BITS = {torch.bfloat16: torch.int16, torch.float16: torch.int16, torch.float32: torch.int32,
         torch.float64: torch.int64}


def can_be_perturbed(tensor):
    return tensor.dtype in NOISE and tensor.numel() > 0


def _add_noise(tensor):
    noise = NOISE[tensor.dtype]
    return torch.where(tensor.abs() > noise ** 0.5, tensor + noise, tensor)


def _flip_bit(tensor):
    plain = tensor.contiguous()
    flipped = (plain.view(_BITS[tensor.dtype]) ^ 1).view(tensor.dtype)
    normal = (plain.abs() > torch.finfo(tensor.dtype).tiny) & torch.isfinite(plain)
    return torch.where(normal, flipped, plain)


def _exchange(tensor):
    exchanged = tensor.clone(memory_format=torch.contiguous_format)
    flat = exchanged.view(-1)
    first = flat[0].clone()
    flat[0] = flat[-1]
    flat[-1] = first
    return exchanged


def _to_float(tensor):
    return tensor.to(torch.float32) if tensor.dtype in _HALVES else tensor


def _to_host(tensor):
    return _to_float(tensor).cpu()


_OF_THE_FIRST = {"add_noise": _add_noise, "bit_noise": _flip_bit, "change_value": _exchange,
                 "no_change": lambda tensor: tensor}
_OF_ALL = {"improve_precision": _to_float, "to_cpu": _to_host}


def of_all(mode):
    """Whether all inputs are changed; otherwise only the first one."""
    return mode in _OF_ALL


def perturbed(mode, values):
    """The perturbed values, or None if there is nothing to perturb."""
    if mode in _OF_ALL:
        if mode == "improve_precision" and not any(tensor.dtype in _HALVES for tensor in structures.tensors_in(values)):
            return None
        return structures.changed(values, _OF_ALL[mode])
    first = next((tensor for tensor in structures.tensors_in(values) if can_be_perturbed(tensor)), None)
    if first is None:
        return None
    with torch.no_grad():
        other = _OF_THE_FIRST[mode](first.detach())
    return structures.changed(values, lambda tensor: other if tensor is first else tensor)


def device_to_host(values):
    """Replaces device arguments by the host."""
    return [torch.device("cpu") if isinstance(value, torch.device) else value for value in values]
