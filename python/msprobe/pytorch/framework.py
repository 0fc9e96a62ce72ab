# SPDX-License-Identifier: Apache-2.0
"""Differences between PyTorch versions, and the framework objects that the extension needs."""

import importlib
import re

import torch

from msprobe import _native

_numbers = re.findall(r"\d+", torch.__version__.split("+")[0])
VERSION = tuple(int(number) for number in _numbers[:2])

# Captured before anything is wrapped: our own calls must be neither recorded nor slowed down.
_base = torch._C._TensorBase
view_as = _base.view_as
detach = _base.detach
expand_as = _base.expand_as
is_grad_enabled = torch.is_grad_enabled


def dtype_table():
    """Rows (dtype, number, bytes of an element); the most frequent first."""
    rows = []
    for name in sorted(_native.dtypes, key=lambda name: (name not in ("float32", "bfloat16", "int64"), name)):
        dtype = getattr(torch, name, None)
        if dtype is not None:
            number, size, _ = _native.dtypes[name]
            rows.append((dtype, number, size))
    return rows


def has_storage(tensor):
    """Returns False if the tensor's memory was released, as sharded parameters do; its address is then only the offset."""
    try:
        return tensor.numel() == 0 or tensor.data_ptr() != tensor.storage_offset() * tensor.element_size()
    except RuntimeError:  # it has no memory that can be asked for
        return True


def dtype_number(dtype):
    known = _native.dtypes.get(str(dtype).replace("torch.", ""))
    return known[0] if known else _native.DTYPE_OTHER


CAN_COMPILE = VERSION >= (2, 0)


def _never():
    return False


def _find_is_compiling():
    if not CAN_COMPILE:
        return _never
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_compiling", None) or torch._dynamo.is_compiling


# Whether a compiler traces this code.
is_compiling = _find_is_compiling()


# Whether torch.export() traces; its result runs elsewhere.
is_exporting = getattr(getattr(torch, "compiler", None), "is_exporting", None) or _never


def find_compile_context():
    """A function that returns None unless a compiler is active in this thread. None if this version has none."""
    context = getattr(getattr(torch, "_guards", None), "TracingContext", None)
    return getattr(context, "try_get", None)


HAS_HOOKS_WITH_KWARGS = VERSION >= (2, 0)
HAS_POST_ACCUMULATE_HOOKS = hasattr(torch.Tensor, "register_post_accumulate_grad_hook")


def _has_always_call():
    import inspect
    try:
        return "always_call" in inspect.signature(torch.nn.Module.register_forward_hook).parameters
    except (TypeError, ValueError):
        return False


HAS_ALWAYS_CALL = _has_always_call()


def make_tables():
    """Builds the function tables that PyTorch otherwise builds on first use, while the original functions are in
    place."""
    if VERSION >= (2, 0):
        importlib.import_module("torch.utils._device")._device_constructors()


def rank_of_process():
    """Returns the rank in the default process group; None without a group."""
    return torch.distributed.get_rank() if _has_processes() else None


def count_of_processes():
    return torch.distributed.get_world_size() if _has_processes() else None


def _has_processes():
    distributed = getattr(torch, "distributed", None)
    return distributed is not None and distributed.is_available() and distributed.is_initialized()
