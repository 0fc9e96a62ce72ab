# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of cells, and their gradients: `actv` and `actv_grad`."""

from msprobe.core.monitor.engine import guarded
from msprobe.core.monitor.watch import CallFigures, WatchedCalls

from .. import cells, framework

_Tensor = framework.Tensor


def _tensors(value):
    """Returns the tensors of a list or tuple, or the single one, as a list. This framework's files number the tensors
    alone, without the other values."""
    return [one for one in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(one, _Tensor)]


class _WatchedCell:
    def __init__(self, watch, stage, name, cell, forward, backward):
        self._watch = watch
        self._name = name
        self._figures = CallFigures(watch, stage, name)
        self._handles = []
        if forward:
            keys = {"with_kwargs": True} if framework.HAS_HOOKS_WITH_KWARGS else {}
            self._handles.append(cells.register_after(cell, self._called, **keys))
        if backward:
            self._handles.append(cell.register_backward_hook(self._came_back))

    def step_ends(self):
        self._figures.step_ends()

    def remove(self):
        for handle in self._handles:
            handle.remove()

    def _called(self, cell, args, *kwargs_and_output):
        if self._watch.is_on(cell):
            guarded("the statistics of " + self._name, self._observe_call, args, *kwargs_and_output)

    def _observe_call(self, args, *kwargs_and_output):
        kwargs = kwargs_and_output[0] if len(kwargs_and_output) == 2 else {}
        self._figures.forward(input=_tensors(list(args) + list(kwargs.values())), output=_tensors(kwargs_and_output[-1]))

    def _came_back(self, cell, grad_inputs, grad_outputs):
        if self._watch.engine.collecting():
            guarded("the gradients of " + self._name, self._observe_gradients, grad_inputs, grad_outputs)

    def _observe_gradients(self, grad_inputs, grad_outputs):
        self._figures.backward(input=_tensors(grad_inputs), output=_tensors(grad_outputs))


class Cells(WatchedCalls):
    WORD = "cell"

    def parts_of(self, models):
        return [(stage, path, cell) for stage, model in enumerate(models) for path, cell in cells.named_cells(model)]

    def hooked(self, stage, path, cell, forward, backward):
        return _WatchedCell(self._watch, stage, self._watch.module_names.of(stage, path), cell, forward, backward)
