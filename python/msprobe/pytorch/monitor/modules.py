# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of modules, and their gradients: `actv` and `actv_grad`."""

import torch

from msprobe.core.common import log
from msprobe.core.monitor.watch import CallFigures, WatchedCalls

from .calls import HookedModule, can_have_backward, modules_of


class WatchedModule(HookedModule):
    def __init__(self, watch, stage, name, module, forward, backward):
        super().__init__(module, backward)
        self._watch = watch
        self._figures = CallFigures(watch, stage, name)
        self._has_forward = forward

    def is_on(self, module):
        return self._watch.is_on(module)

    def call_done(self, inputs, output):
        if not self._has_forward:
            return
        if isinstance(output, torch.Tensor):
            output = (output,)
        self._figures.forward(input=inputs, output=output if isinstance(output, (list, tuple)) else ())

    def backward_done(self, grad_inputs, grad_outputs):
        if self._watch.engine.collecting():
            self._figures.backward(input=grad_inputs, output=grad_outputs)

    def step_ends(self):
        super().step_ends()
        self._figures.step_ends()


class Modules(WatchedCalls):
    def parts_of(self, models):
        return modules_of(models)

    def hooked(self, stage, path, module, forward, backward):
        has_backward = can_have_backward(module)
        if not has_backward:
            log.warn("monitor: %s has a hook of register_backward_hook(): no gradients of it" % (path or "the model"))
        return WatchedModule(self._watch, stage, self._watch.module_names.of(stage, path), module, forward,
                             backward and has_backward)
