# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of a pack."""

import torch

from msprobe.core import torch_flags

Tensor = torch.Tensor
Model = torch.nn.Module
MODEL = "torch.nn.Module"

# (namespace, its name in packs, functions) whose calls for random numbers are counted.
RANDOM = ((torch, "torch", ("rand", "randint", "randn", "rand_like", "randint_like", "randn_like", "manual_seed")),
          (torch.Tensor, "torch.Tensor", ("exponential_", "geometric_", "log_normal_", "cauchy_")))


def settings():
    """Members of `env` beside the variables: a comparison of packs knows them, other readers pass them over."""
    return {name: str(value) for name, value in torch_flags.read().items()}


def rank():
    """Returns the rank; None while there are no distributed processes."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank()


def hook_forward(model, hook):
    """Calls hook(model, args, kwargs) before each forward; returns the handle."""
    try:
        return model.register_forward_pre_hook(hook, with_kwargs=True)
    except TypeError:  # before PyTorch 2.0
        return model.register_forward_pre_hook(hook)


def named_parameters(model):
    return model.named_parameters()


def statistics(tensor, as_float32):
    """Maximum, minimum, mean and norm; None without elements."""
    with torch.no_grad():
        tensor = tensor.detach()
        if tensor.numel() == 0 or tensor.is_meta:
            return None
        if tensor.is_complex():
            tensor = tensor.real
        if as_float32 or not tensor.is_floating_point() or tensor.dtype == torch.float64:
            tensor = tensor.float()
        return torch.stack([tensor.max(), tensor.min(), tensor.mean(), torch.norm(tensor)]).tolist()
