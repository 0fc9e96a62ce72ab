# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of cells, and their gradients: `actv` and `actv_grad`."""

from msprobe.core.common import log
from msprobe.core.monitor.engine import guarded
from msprobe.core.monitor.names import numbered
from msprobe.core.monitor.watch import Calls

from .. import cells, framework

_Tensor = framework.Tensor


def _tensors(values):
    """Without the rest, and numbered so: that is how this framework's files have it."""
    return [one for one in values if isinstance(one, _Tensor)]


class _WatchedCell:
    def __init__(self, watch, stage, name, cell, forward, backward):
        self._watch = watch
        self._stage = stage
        self._name = name
        self._forwards = Calls(watch.micro_batches[stage])
        self._backwards = Calls(watch.micro_batches[stage])
        self._handles = []
        if forward:
            keys = {"with_kwargs": True} if framework.HAS_HOOKS_WITH_KWARGS else {}
            self._handles.append(cells.register_after(cell, self._called, **keys))
        if backward:
            self._handles.append(cell.register_backward_hook(self._came_back))

    def step_ends(self):
        self._forwards.reset()
        self._backwards.reset()

    def remove(self):
        for handle in self._handles:
            handle.remove()

    def _called(self, cell, args, *kwargs_and_output):
        if self._watch.is_on(cell):
            guarded("the figures of " + self._name, self._observe_call, args, *kwargs_and_output)

    def _observe_call(self, args, *kwargs_and_output):
        kwargs = kwargs_and_output[0] if len(kwargs_and_output) == 2 else {}
        output = kwargs_and_output[-1]
        micro_step = self._forwards.next()
        self._observe("actv", "input", _tensors(list(args) + list(kwargs.values())), micro_step)
        if isinstance(output, _Tensor):
            self._observe("actv", "output", [output], micro_step)
        elif isinstance(output, (list, tuple)):
            self._observe("actv", "output", _tensors(output), micro_step)

    def _came_back(self, cell, grad_inputs, grad_outputs):
        if self._watch.engine.collecting():
            guarded("the gradients of " + self._name, self._observe_gradients, grad_inputs, grad_outputs)

    def _observe_gradients(self, grad_inputs, grad_outputs):
        micro_step = self._backwards.next()
        for word, gradients in (("input", grad_inputs), ("output", grad_outputs)):
            gradients = gradients if isinstance(gradients, (list, tuple)) else (gradients,)
            self._observe("actv_grad", word, _tensors(gradients), micro_step)

    def _observe(self, quantity, word, values, micro_step):
        engine, observer = self._watch.engine, self._watch.observer
        for index, value in enumerate(values):
            name = numbered(self._name + "." + word, index, len(values))
            observer.observe(engine.series(quantity, self._stage, name, micro_step), value)


class Cells:
    """Which cells are watched."""

    def __init__(self, watch):
        self._watch = watch
        self._watched = []

    def attach(self, models):
        settings = self._watch.settings
        forward, backward = not settings.backward_only, not settings.forward_only
        if not settings.xy_distribution:
            return
        if not (forward or backward):
            log.warn("monitor: forward_only and backward_only together leave no figures of cells")
            return
        for stage, model in enumerate(models):
            for path, cell in cells.named_cells(model):
                if settings.all_xy or self._watch.targets.has_module(stage, path):
                    self._watched += self._hooked(stage, path, cell, forward, backward)

    def _hooked(self, stage, path, cell, forward, backward):
        name = self._watch.module_names.of(stage, path)
        watched = guarded("hooking a cell", _WatchedCell, self._watch, stage, name, cell, forward, backward)
        return [] if watched is None else [watched]

    def step_ends(self):
        for watched in self._watched:
            watched.step_ends()

    def remove(self):
        for watched in self._watched:
            watched.remove()
        self._watched = []
