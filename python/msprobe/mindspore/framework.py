# SPDX-License-Identifier: Apache-2.0
"""Differences between MindSpore versions, and the framework objects that the extension needs."""

import functools
import importlib
import inspect

import mindspore
from mindspore import nn, ops
from mindspore.ops.operations import _inner_ops

try:
    from mindspore.common.api import _pynative_executor as executor
except ImportError:  # moved
    from mindspore.graph.api import _pynative_executor as executor

Tensor = mindspore.Tensor
Parameter = mindspore.Parameter
Dtype = type(mindspore.float32).__mro__[1]  # the common type of all dtypes of numbers

# Captured before anything is wrapped: our own calls must be neither recorded nor slowed down.
asnumpy = Tensor.asnumpy
BackwardHook = _inner_ops.CellBackwardHook
HookBackward = ops.HookBackward

# From 2.7 on the hook takes its pass-through values as one tuple instead of several arguments.
HOOK_TAKES_TUPLE = "args" in inspect.signature(BackwardHook.__call__).parameters and (
    inspect.signature(BackwardHook.__call__).parameters["args"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
_FORWARD_HOOK = inspect.signature(nn.Cell.register_forward_hook).parameters
HAS_HOOKS_WITH_KWARGS = "with_kwargs" in _FORWARD_HOOK
HAS_ALWAYS_CALL = "always_call" in _FORWARD_HOOK

try:
    from mindspore._c_expression import CreationType
except ImportError:
    CreationType = None


# The types of integers and booleans.
_WITHOUT_GRADIENT = frozenset(getattr(mindspore, name) for name in (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64") if hasattr(mindspore, name))


def may_have_gradient(value):
    return isinstance(value, Tensor) and value.dtype not in _WITHOUT_GRADIENT


def requires_grad():
    """Whether gradients will be computed for the code that runs now."""
    return executor.requires_grad()


def allow_in_place(tensor):
    """Allows in-place operations on tensors that passed a hook node: they are views, which refuse such operations by
    default."""
    if CreationType is not None and isinstance(tensor, Tensor):
        executor.set_creation_type(tensor, CreationType.DEFAULT)


def _takes_objects():
    try:
        check = importlib.import_module("mindspore._checkparam").check_hook_fn
    except (ImportError, AttributeError):
        return True
    try:
        check(functools.partial(int))
    except TypeError:
        return False
    return True


# Before 2.10 a hook must be a function: other callable objects are refused.
_TAKES_OBJECTS = _takes_objects()


def cell_hook(hook):
    """Converts a hook of core.hooks to the form that a cell accepts. A copy of the cell shares the function, which
    does nothing there."""
    if _TAKES_OBJECTS:
        return hook
    owner = hook.hooked.module

    def function(cell, *rest):
        return hook(cell, *rest) if owner() is cell else None
    return function


def register_hook(tensor, hook):
    """Calls the hook with the gradient of a tensor. Uses MindSpore's own method, even where MSAdapter has replaced
    it."""
    if Tensor.register_hook.__module__.split(".")[0] == "mindspore":
        return tensor.register_hook(hook if _TAKES_OBJECTS else lambda gradient: hook(gradient))
    from mindspore.common.hook_handle import _TensorHookHandle
    handle = _TensorHookHandle(tensor)
    handle.id = Tensor.__base__.register_hook(tensor, hook)
    return handle


def is_graph_mode():
    return mindspore.get_context("mode") == mindspore.GRAPH_MODE


def rank_of_process():
    """The rank; None while communication is not initialised."""
    if not mindspore.communication.GlobalComm.INITED:
        return None
    return mindspore.communication.get_rank()
