# SPDX-License-Identifier: Apache-2.0
"""Calls of modules as seen by hooks: inputs, outputs, and the gradients of both."""

import sys

import torch

from msprobe.core.hooks import Hook
from msprobe.core.monitor.engine import guarded
from msprobe.pytorch import framework, gradients

_graph_task = getattr(torch._C, "_current_graph_task_id", None)


def is_recomputing():
    """Whether a backward is running in this thread: a forward in it is a recomputation by checkpointing."""
    if _graph_task is not None:
        return _graph_task() != -1
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith("utils/checkpoint.py") and frame.f_code.co_name in ("backward", "unpack"):
            return True
        frame = frame.f_back
    return False


_is_compiling = framework.is_compiling


class _Before(Hook):
    __slots__ = ()

    def __call__(self, module, args, kwargs=None):
        if not _is_compiling():
            guarded("entering a module", self.hooked.before, module, args, kwargs or {})


class _After(Hook):
    __slots__ = ()

    def __call__(self, module, args, *rest):
        # rest: (output,), or (kwargs, output) in versions whose hooks get keyword arguments.
        if not _is_compiling():
            guarded("leaving a module", self.hooked.after, module, args, rest[0] if len(rest) > 1 else {}, rest[-1])


def hook_calls(module, hooked, before=True):
    """Installs hooks that call hooked.before() and hooked.after(), and returns their handles."""
    keys = {"with_kwargs": True} if framework.HAS_HOOKS_WITH_KWARGS else {}
    handles = [module.register_forward_pre_hook(_Before(hooked, module), **keys)] if before else []
    return handles + [module.register_forward_hook(_After(hooked, module), **keys)]


class HookedModule:
    """A module with hooks. Subclasses supply is_on() and handle the values."""

    def __init__(self, module, backward, before=False):
        """`before`: also call call_begins()."""
        self._with_backward = backward
        self._open = []  # backwards of calls that have begun
        self._handles = hook_calls(module, self, backward or before)

    def is_on(self, module):
        raise NotImplementedError

    def call_begins(self, inputs):
        """Receives the tensors among the arguments."""

    def call_done(self, inputs, output):
        """Called after a call that was not a recomputation."""

    def backward_done(self, grad_inputs, grad_outputs):
        """Receives the gradients of the positional arguments and of the outputs; None for a value without a gradient."""

    def step_ends(self):
        self._open.clear()

    def remove(self):
        for handle in self._handles:
            handle.remove()

    def before(self, module, args, kwargs):
        if not self.is_on(module):
            return
        if not is_recomputing():
            guarded("entering a module", self.call_begins, _tensors_in(args, kwargs))
        if not self._with_backward:
            return
        backward = _Backward(self)
        observed = gradients.Gradients(backward)  # without a reference back, which would be a cycle
        backward.hook_inputs(observed, args)
        self._open.append((backward, observed))

    def after(self, module, args, kwargs, output):
        if not self.is_on(module):
            return
        if not is_recomputing():
            guarded("leaving a module", self.call_done, _tensors_in(args, kwargs), output)
        if self._open:
            backward, observed = self._open.pop()
            backward.hook_output(observed, output)


def _tensors_in(args, kwargs):
    values = list(args) + list(kwargs.values()) if kwargs else args
    return [value for value in values if isinstance(value, torch.Tensor)]


class _Backward:
    """The backward of one call: gradients at its outputs, then at its inputs; None for values without a gradient."""

    __slots__ = ("watched", "inputs", "outputs")

    def __init__(self, watched):
        self.watched = watched
        self.inputs = self.outputs = ((), 0)  # positions with a gradient, and the number of all positions

    def hook_inputs(self, observed, args):
        self.inputs = _needing_gradient(args), len(args)
        observed.enter([args[position] for position in self.inputs[0]], [])

    def hook_output(self, observed, output):
        outputs = (output,) if isinstance(output, torch.Tensor) else output
        if not isinstance(outputs, tuple):
            outputs = ()
        # A leaf's gradient also comes from its other uses, so it is not counted.
        self.outputs = [place for place in _needing_gradient(outputs) if outputs[place].grad_fn is not None], len(outputs)
        observed.leave([outputs[position] for position in self.outputs[0]])

    def begin_backward(self):
        """Waits for the rest."""

    def end_backward(self, grad_inputs, grad_outputs):
        if grad_outputs is not None:
            guarded("the backward of a module", self.watched.backward_done, _spread(grad_inputs, *self.inputs),
                    _spread(grad_outputs, *self.outputs))


def _needing_gradient(values):
    if not framework.is_grad_enabled():
        return []
    return [index for index, value in enumerate(values) if isinstance(value, torch.Tensor) and value.requires_grad]


def _spread(arrived, positions, count):
    spread = [None] * count
    for index, gradient in zip(positions, arrived):
        spread[index] = gradients.plain(gradient)
    return spread


def can_have_backward(module):
    """Returns False for modules with a hook of the old kind, which PyTorch cannot combine with others."""
    return not (len(module._backward_hooks) > 0 and module._is_full_backward_hook is False)


def modules_of(models):
    """(stage, name, module) of all modules that can be hooked, each once."""
    for stage, model in enumerate(models):
        for name, module in model.named_modules():
            if type(module).__name__ == "FullyShardedDataParallel" or isinstance(module, torch.jit.ScriptModule):
                continue
            yield stage, name, module
