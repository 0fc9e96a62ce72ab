# SPDX-License-Identifier: Apache-2.0
"""Where MSAdapter keeps its functions, and which parts of its tensors are MindSpore's."""

import importlib
import sys

import mindspore
import torch
from mindspore import ops

from msprobe.mindspore import framework

Tensor = framework.Tensor
Module = torch.nn.Module
Parameter = torch.nn.Parameter

# The package that the name `torch` leads to. There may be lookalike modules in between, which pass on what is asked of
# them and show nothing themselves.
PACKAGE = Module.__module__.split(".")[0]


def space(path):
    """Returns the Python module of torch<path>, or None."""
    try:
        return importlib.import_module(PACKAGE + path)
    except ImportError:
        return None


# On the host, kernels that work in place do not write to the tensors that a border returned.
ON_HOST = mindspore.get_context("device_target") == "CPU"
_identity = ops.Identity()


def for_writing(tensors):
    """Copies, if needed, on which in-place operations work."""
    return [_identity(tensor) for tensor in tensors] if ON_HOST else tensors


def rank_of_process():
    distributed = sys.modules.get(PACKAGE + ".distributed")
    if distributed is not None and distributed.is_initialized():
        return distributed.get_rank()
    return framework.rank_of_process()
