# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of modules, and their gradients."""

import sys

import torch

from msprobe.core.common import log
from msprobe.core.hooks import Hook
from msprobe.core.monitor.engine import guard, guarded
from msprobe.core.monitor.names import numbered
from msprobe.pytorch import framework, gradients

from .watch import Calls

_graph_task = getattr(torch._C, "_current_graph_task_id", None)


def is_recomputing():
    """Whether a backward is under way in this thread: a forward in it is one that checkpointing does again."""
    if _graph_task is not None:
        return _graph_task() != -1
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith("utils/checkpoint.py") and frame.f_code.co_name in ("backward", "unpack"):
            return True
        frame = frame.f_back
    return False


_is_compiling = framework.is_compiling or (lambda: False)


class _Before(Hook):
    __slots__ = ()

    def __call__(self, module, args, kwargs=None):
        if _is_compiling():
            return None
        hooked_args = guarded("entering a module", self.hooked.before, module, args)
        if hooked_args is None:
            return None
        return hooked_args if kwargs is None else (hooked_args, kwargs)


class _After(Hook):
    __slots__ = ()

    def __call__(self, module, args, *rest):
        # rest: (output,), or (kwargs, output) where hooks get keyword arguments.
        if _is_compiling():
            return None
        return guarded("leaving a module", self.hooked.after, module, args, rest[0] if len(rest) > 1 else {}, rest[-1])


def hook_calls(module, hooked, before=True):
    """The handles of hooks that call hooked.before() and hooked.after()."""
    keys = {"with_kwargs": True} if framework.HAS_HOOKS_WITH_KWARGS else {}
    handles = [module.register_forward_pre_hook(_Before(hooked), **keys)] if before else []
    return handles + [module.register_forward_hook(_After(hooked), **keys)]


def is_on(engine, module):
    """Whether a call of the module counts."""
    return engine.collecting() and module.training


class WatchedModule:
    """A module whose figures go into `actv` and `actv_grad`."""

    def __init__(self, watch, stage, name, module, forward, backward):
        self.watch = watch
        self.stage = stage
        self.name = name
        self._has_forward = forward
        self._forwards = Calls(watch.micro_batches[stage])
        self._backwards = Calls(watch.micro_batches[stage])
        self._open = []  # backwards of calls that have begun
        self._handles = hook_calls(module, self, backward)

    def remove(self):
        for handle in self._handles:
            handle.remove()

    def step_ends(self):
        self._open.clear()
        self._forwards.reset()
        self._backwards.reset()

    def is_on(self, module):
        return is_on(self.watch.engine, module)

    def before(self, module, args):
        if not self.is_on(module):
            return None
        backward = _Backward(self)
        hooked_args = backward.hook_inputs(args)
        self._open.append(backward)
        return None if hooked_args is args else hooked_args

    def after(self, module, args, kwargs, output):
        if not self.is_on(module):
            return None
        if self._has_forward and not is_recomputing():
            inputs = [value for value in args if isinstance(value, torch.Tensor)]
            inputs += [value for value in kwargs.values() if isinstance(value, torch.Tensor)]
            guarded("the forward of a module", self.call_done, inputs, output)
        if not self._open:
            return None
        hooked_output = self._open.pop().hook_output(output)
        return None if hooked_output is output else hooked_output

    def call_done(self, inputs, output):
        micro_step = self._forwards.next()
        self._observe("actv", "input", inputs, micro_step)
        if isinstance(output, torch.Tensor):
            output = (output,)
        if isinstance(output, (list, tuple)):
            self._observe("actv", "output", output, micro_step)

    def backward_done(self, grad_inputs, grad_outputs):
        if not self.watch.engine.collecting():
            return
        micro_step = self._backwards.next()
        self._observe("actv_grad", "input", grad_inputs, micro_step)
        self._observe("actv_grad", "output", grad_outputs, micro_step)

    def _observe(self, quantity, word, values, micro_step):
        engine, observer = self.watch.engine, self.watch.observer
        for index, value in enumerate(values):
            name = numbered(self.name + "." + word, index, len(values))
            observer.observe(engine.series(quantity, self.stage, name, micro_step), value)


class _Backward:
    """The backward of one call: gradients at its outputs, then at its inputs, None for what has none."""

    __slots__ = ("watched", "count", "positions", "out_count", "out_positions", "grad_outputs")

    def __init__(self, watched):
        self.watched = watched
        self.count = 0
        self.positions = ()
        self.grad_outputs = None

    def hook_inputs(self, args):
        self.count = len(args)
        self.positions = _needing_gradient(args)
        return _replace(args, self.positions, gradients.leaving, self._inputs_complete, None)

    def hook_output(self, output):
        outputs = (output,) if isinstance(output, torch.Tensor) else output
        if not isinstance(outputs, tuple):
            return output
        self.out_count = len(outputs)
        self.out_positions = _needing_gradient(outputs)
        hooked = _replace(outputs, self.out_positions, gradients.entering, self._outputs_complete,
                          self._outputs_arrived)
        return hooked[0] if outputs is not output else hooked

    def _outputs_arrived(self, arrived):
        self.grad_outputs = _spread(arrived, self.out_positions, self.out_count)

    def _outputs_complete(self, arrived):
        self._outputs_arrived(arrived)
        if not self.positions:
            self._done([None] * self.count)

    def _inputs_complete(self, arrived):
        # Without the outputs': the gradient came another way, as in a second derivative.
        if self.grad_outputs is not None:
            self._done(_spread(arrived, self.positions, self.count))

    def _done(self, grad_inputs):
        grad_outputs, self.grad_outputs = self.grad_outputs, None
        guarded("the backward of a module", self.watched.backward_done, grad_inputs, grad_outputs)


def _needing_gradient(values):
    if not framework.is_grad_enabled():
        return []
    return [index for index, value in enumerate(values) if isinstance(value, torch.Tensor) and value.requires_grad]


def _replace(values, positions, choose, complete, progress):
    """The same tuple with hooked tensors at these positions."""
    if not positions:
        return values
    hooked = gradients.hook_tensors([values[index] for index in positions], choose, complete, progress)
    replaced = list(values)
    for index, tensor in zip(positions, hooked):
        replaced[index] = tensor
    return type(values)(*replaced) if hasattr(values, "_fields") else type(values)(replaced)


def _spread(arrived, positions, count):
    spread = [None] * count
    for index, gradient in zip(positions, arrived):
        spread[index] = gradient
    return spread


class Modules:
    """Which modules are watched, and by what."""

    def __init__(self, watch):
        self._watch = watch
        self._watched = []

    def attach(self, models):
        settings = self._watch.settings
        forward, backward = not settings.backward_only, not settings.forward_only
        if not settings.xy_distribution or not (forward or backward):
            if settings.xy_distribution:
                log.warn("monitor: forward_only and backward_only together leave no figures of modules")
            return
        for stage, name, module in modules_of(models):
            if not settings.all_xy and not self._watch.targets.has_module(stage, name):
                continue
            old = len(module._backward_hooks) > 0 and module._is_full_backward_hook is False
            if old:
                log.warn("monitor: %s has a hook of register_backward_hook(): no gradients of it" % (name or "the model"))
            try:
                self._watched.append(WatchedModule(self._watch, stage, self._watch.module_names.of(stage, name), module,
                                                   forward, backward and not old))
            except Exception:
                guard("hooking a module")

    def step_ends(self):
        for watched in self._watched:
            watched.step_ends()

    def remove(self):
        for watched in self._watched:
            watched.remove()
        self._watched = []


def modules_of(models):
    """(stage, name, module) of all modules that can be hooked, each once."""
    for stage, model in enumerate(models):
        for name, module in model.named_modules():
            if type(module).__name__ == "FullyShardedDataParallel" or isinstance(module, torch.jit.ScriptModule):
                continue
            yield stage, name, module
