# SPDX-License-Identifier: Apache-2.0
"""What differs between the versions of PyTorch, and what the extension needs of it."""

import re

import torch

from msprobe.core.describe import DTYPE_OTHER

_numbers = re.findall(r"\d+", torch.__version__.split("+")[0])
VERSION = tuple(int(number) for number in _numbers[:2])

# Captured before anything is wrapped: our own calls must not be recorded, nor be slowed down.
_base = torch._C._TensorBase
view_as = _base.view_as
detach = _base.detach
expand_as = _base.expand_as
is_grad_enabled = torch.is_grad_enabled

# Numbers as in msprobe/collector.h.
_DTYPES = {
    "float64": (0, 8), "float32": (1, 4), "float16": (2, 2), "bfloat16": (3, 2),
    "float8_e4m3fn": (4, 1), "float8_e5m2": (5, 1), "float8_e4m3fnuz": (6, 1), "float8_e5m2fnuz": (7, 1),
    "float8_e8m0fnu": (8, 1),
    "int64": (10, 8), "int32": (11, 4), "int16": (12, 2), "int8": (13, 1),
    "uint64": (14, 8), "uint32": (15, 4), "uint16": (16, 2), "uint8": (17, 1), "bool": (18, 1),
    "complex32": (19, 4), "complex64": (20, 8), "complex128": (21, 16),
    "qint8": (22, 1), "quint8": (23, 1), "qint32": (24, 4),
}

def dtype_table():
    """Rows (dtype, number, bytes of an element); the most frequent first."""
    rows = []
    for name in sorted(_DTYPES, key=lambda name: (name not in ("float32", "bfloat16", "int64"), name)):
        dtype = getattr(torch, name, None)
        if dtype is not None:
            rows.append((dtype,) + _DTYPES[name])
    return rows


def dtype_number(dtype):
    known = _DTYPES.get(str(dtype).replace("torch.", ""))
    return known[0] if known else DTYPE_OTHER


def _find_is_compiling():
    if VERSION < (2, 0):
        return None
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_compiling", None) or torch._dynamo.is_compiling


# None where nothing can be compiled.
is_compiling = _find_is_compiling()

def find_compile_context():
    """Tells, unless it returns None, that a compiler is at work in this thread. None where there is no such thing."""
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


def rank_of_process():
    """The rank in the default process group; None while there is none."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank()
