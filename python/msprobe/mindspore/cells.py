# SPDX-License-Identifier: Apache-2.0
"""Hooks on the cells of MindSpore: their calls, parameters and gradients."""

import weakref

from mindspore import nn

from msprobe import _native
from msprobe.core import session
from msprobe.core.hooks import Hooked, Hooks

from . import compiling, framework
from .gradients import Backward

_backward_switch = session.backward_switch


class Parameters:
    """The own parameters of a cell and the hooks on their gradients."""

    def __init__(self, number, cell):
        self._number = number
        self._cell = weakref.ref(cell)
        self._handles = {}

    def named(self):
        cell = self._cell()
        return {} if cell is None else self.own(cell)

    @staticmethod
    def own(cell):
        return {name.split(".")[-1]: parameter for name, parameter in cell.parameters_dict(recurse=False).items()}

    def hook(self):
        if not framework.requires_grad():
            return
        wanted = {name: parameter for name, parameter in self.named().items() if parameter.requires_grad}
        for name, parameter in wanted.items():
            known = self._handles.pop(name, None)
            if known is not None:
                known.remove()
            self._handles[name] = framework.register_hook(parameter, self._make_hook(name, len(wanted)))

    def _make_hook(self, name, count):
        number = self._number

        def arrived(gradient):
            if not _backward_switch[0]:
                return
            try:
                _native.parameter_gradient(number, name, count, gradient)
            except Exception:
                session.guard("recording the gradient of a parameter")

        return arrived

    def remove(self):
        for handle in self._handles.values():
            handle.remove()
        self._handles.clear()


class HookedCell(Hooked):
    Backward = Backward
    Parameters = Parameters
    is_compiling = staticmethod(compiling.is_compiling)

    def __init__(self, name, cell):
        super().__init__(name, cell, with_backward=True)
        self.parameters = self.Parameters(self.number, cell)

    def register(self, cell, before, after):
        before, after = framework.cell_hook(before), framework.cell_hook(after)
        if not framework.HAS_HOOKS_WITH_KWARGS:
            return [cell.register_forward_pre_hook(before), register_after(cell, after)]
        more = {"always_call": True} if framework.HAS_ALWAYS_CALL else {}
        handles = [cell.register_forward_pre_hook(before, with_kwargs=True),
                   register_after(cell, after, with_kwargs=True, **more)]
        # Before the user's hooks, because these may change the cell's result.
        cell._forward_hook.move_to_end(next(reversed(cell._forward_hook)), last=False)
        return handles


def register_after(cell, after, **keys):
    """Also for a cell with a custom backward, which refuses hooks although it calls them."""
    refuses = getattr(cell, "has_bprop", False)
    if not refuses:
        return cell.register_forward_hook(after, **keys)
    cell.has_bprop = False
    try:
        return cell.register_forward_hook(after, **keys)
    finally:
        cell.has_bprop = refuses


class _Hooks(Hooks):
    kind = "mindspore.nn.Cell"
    prefix = "Cell"

    def is_supported(self, cell):
        return isinstance(cell, nn.Cell)

    def count_calls(self, model, count):
        return model.register_forward_pre_hook(lambda cell, args: count())

    def attach_one(self, model, prefix, models):
        for path, cell in named_cells(model):
            if cell is not model and not self.is_hooked(cell):
                self.hook(cell, "%s%s.%s" % (prefix, path, type(cell).__name__))


def named_cells(model):
    """(path, cell) of a model and all cells inside it that are not compiled, each once."""
    seen = set()
    waiting = [("", model)]
    while waiting:
        path, cell = waiting.pop()
        if id(cell) in seen:
            continue
        seen.add(id(cell))
        if compiling.is_compiled(cell):
            compiling.warn()
            continue
        yield path, cell
        inside = [(path + "." + name if path else name, child) for name, child in cell._cells.items()
                  if child is not None]
        waiting.extend(reversed(inside))


hooks = _Hooks(HookedCell)
