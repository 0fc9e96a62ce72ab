# SPDX-License-Identifier: Apache-2.0
"""The backward of a call: gradients at its result and its arguments.

Tensors pass through borders: MindSpore's own identity nodes for hooks, which report the incoming gradients.
"""

import atexit
import itertools
import operator
from collections import OrderedDict

import mindspore

from msprobe.core import nested, session

from . import framework

_Tensor = framework.Tensor
_used = [False]               # borders were made
_numbers = itertools.count()  # numbers of borders: MindSpore identifies them by name


def backward_of(call, by_argument):
    """Selects the class that hooks the backward of one call. `by_argument`: gradients of arguments are recorded in
    the order of arrival."""
    return ByArgument(call) if by_argument else Backward(call)


def _guarded(told):
    def hook(*args):
        try:
            told(*args)
        except Exception:
            session.guard("recording a backward")
    return hook


class Backward:
    """For a cell or a function: one border around all arguments and one around all results."""

    __slots__ = ("call", "border")

    def __init__(self, call):
        self.call = call
        self.border = None  # None: no argument can have a gradient

    put = staticmethod(operator.setitem)  # a tensor into a list or dict that a cell gets

    def is_hooked(self, value, in_place):
        """Tensors inside lists and dicts are not hooked."""
        return isinstance(value, _Tensor) and not in_place

    def hook_inputs(self, args, kwargs=None):
        """For a cell: positional arguments."""
        return self._hook_inputs(args, self.put)

    def hook_arguments(self, args, kwargs):
        """For a function."""
        return self._hook_inputs((args, kwargs or {}), None)

    def _hook_inputs(self, values, put):
        if not framework.requires_grad():
            return values
        tensors = self._tensors_in(values)
        if not any(framework.may_have_gradient(tensor) for tensor in tensors):
            return values
        self.border = _make_border(lambda cell, grad_inputs, grad_outputs: self._record(grad_inputs, grad_outputs))
        self.border.register_backward_hook()
        return nested.replace(values, self.is_hooked, iter(self.enter(tensors)), put)

    def hook_outputs(self, output):
        tensors = self._tensors_in(output) if framework.requires_grad() else ()
        if not tensors:
            return output
        return nested.replace(output, self.is_hooked, iter(self.leave(tensors)), operator.setitem)

    def enter(self, tensors):
        """Returns the tensors that a call receives in place of its tensor arguments."""
        return self.pass_through(self.border, tensors)

    def leave(self, tensors):
        """Returns the tensors that a call returns in place of its tensor results."""
        if self.border is not None:
            tensors = self.pass_through(self.border, tensors)
        before = _make_border(lambda cell, grad_outputs: self._arrived(grad_outputs))
        before.register_backward_pre_hook()
        return self.pass_through(before, tensors)

    def _tensors_in(self, value):
        found = []
        nested.collect(value, self.is_hooked, found)
        return found

    @staticmethod
    def pass_through(border, tensors):
        return _pass(border, tensors)

    def _arrived(self, grad_outputs):
        self.call.begin_backward()
        if self.border is None:
            self._record((), grad_outputs)

    def _record(self, grad_inputs, grad_outputs):
        self.call.end_backward(grad_inputs, grad_outputs)


@atexit.register
def _end_gradients():
    """Ends a gradient. After a gradient that raised an exception, MindSpore keeps its remains, with our borders, until
    the next gradient. If they were freed after the interpreter had ended, MindSpore would wait for it forever."""
    if not _used[0]:
        return
    try:
        if not framework.is_graph_mode():
            mindspore.grad(lambda number: number * 1)(_Tensor(1.0))
    except Exception:
        pass


def _make_border(told):
    _used[0] = True
    table = OrderedDict({0: _guarded(told)})
    border = framework.BackwardHook("msprobe.%d" % next(_numbers), None, table)
    border.msprobe_table = table  # it has a weak reference only
    return border


def _pass(border, tensors):
    if framework.HOOK_TAKES_TUPLE:
        hooked = border(tuple(tensors))
    else:
        hooked = border(*tensors)
        if len(tensors) == 1:
            hooked = (hooked,)
    for tensor in hooked:
        framework.allow_in_place(tensor)
    return hooked


class ByArgument:
    """For an operator: every tensor has a separate border, and gradients are recorded in the order of arrival."""

    __slots__ = ("call", "left", "grad_inputs", "grad_outputs")

    def __init__(self, call):
        self.call = call
        self.left = 0  # arguments whose gradients have not come
        self.grad_inputs = ()
        self.grad_outputs = ()

    def hook_arguments(self, args, kwargs):
        if framework.requires_grad():
            self.left = sum(isinstance(value, _Tensor) for value in args)
            args = self._pass(args, self._input_arrived)
        return args, kwargs or {}

    def hook_outputs(self, output):
        if not framework.requires_grad():
            return output
        if isinstance(output, _Tensor):
            return self._pass((output,), self._output_arrived)[0]
        return self._pass(output, self._output_arrived) if type(output) is tuple else output

    @staticmethod
    def _pass(values, told):
        _used[0] = True
        return tuple(framework.HookBackward(_guarded(told))(value) if isinstance(value, _Tensor) else value
                     for value in values)

    def _output_arrived(self, gradients):
        self.call.begin_backward()
        self.grad_outputs += tuple(gradients)
        self.call.end_backward(None, self.grad_outputs, True)

    def _input_arrived(self, gradients):
        self.grad_inputs += tuple(gradients)
        self.left -= 1
        self.call.end_backward(self.grad_inputs, None, self.left > 0)
