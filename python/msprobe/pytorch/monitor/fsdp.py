# SPDX-License-Identifier: Apache-2.0
"""Gradients of fully sharded parameters: complete on a rank only between its backward and the reduction."""

import importlib

import torch

from msprobe.core.monitor.engine import guarded
from msprobe.core.monitor.replacing import Replaced


def is_flat(module):
    return type(module).__name__ == "FullyShardedDataParallel"


def check(models):
    """Raises ValueError for FSDP1 without the original parameters: its parameters have no usable names."""
    for model in models:
        for module in model.modules():
            if is_flat(module) and not getattr(module, "_use_orig_params", True):
                raise ValueError("monitor: FSDP1 is supported only with use_orig_params=True")


# ---------------------------------------------------------------------- FSDP1


def find_flat(models, parameters, told):
    """The gradient source for parameters inside FSDP1, which are removed from `parameters`."""
    units = [module for model in models for module in model.modules() if is_flat(module)]
    managed = [tensor for unit in units for tensor in _originals(getattr(unit, "_handle", None))]
    taken = [parameters.pop(tensor) for tensor in managed if tensor in parameters]
    if not taken:
        return []
    runtime = importlib.import_module("torch.distributed.fsdp._runtime_utils")

    def before(state, handle, *unused, **more):
        guarded("a flat gradient", _tell_slices, handle.flat_param, told)

    return [Replaced(runtime, "_post_backward_hook", before=before)]


def _originals(handle):
    return getattr(getattr(handle, "flat_param", None), "_params", None) or ()


def _tell_slices(flat, told):
    if flat.grad is None:
        return
    sizes = flat._numels_with_padding
    padding = flat._is_padding_mask
    slices = torch.split(flat.grad.detach()[:sum(sizes)], sizes)
    pieces = [piece for piece, is_padding in zip(slices, padding) if not is_padding]
    for tensor, piece, shape in zip(flat._params, pieces, flat._shapes):
        told(tensor, piece.view(shape))


# ---------------------------------------------------------------------- FSDP2


def find_sharded(models, parameters, told):
    """The gradient source for parameters of modules on which fully_shard() was called, which are removed from
    `parameters`."""
    if not any(_is_sharding(module) for model in models for module in model.modules()):
        return []
    wanted = [tensor for tensor in parameters if hasattr(tensor, "_local_tensor")]
    group = _group_module()
    if not wanted or group is None:
        return []
    for tensor in wanted:
        del parameters[tensor]

    def before(fsdp_params, unsharded_grads, *unused, **more):
        for one, gradient in zip(fsdp_params, unsharded_grads):
            guarded("a sharded gradient", told, one.sharded_param, gradient)

    return [Replaced(group, "foreach_reduce", before=before)]


def _is_sharding(module):
    return any(kind.__name__ == "FSDPModule" for kind in type(module).__mro__)


def _group_module():
    for name in ("torch.distributed.fsdp._fully_shard._fsdp_param_group",
                 "torch.distributed._composable.fsdp._fsdp_param_group"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(module, "foreach_reduce"):
            return module
    return None
