# SPDX-License-Identifier: Apache-2.0
"""The backward of a call: gradients at its result and its arguments.

Tensors pass through borders: identities of MindSpore's own for hooks, that tell the gradients that come back. Tensors
inside of lists and dicts stay as they are.
"""

import itertools
from collections import OrderedDict

from msprobe.core import session

from . import framework

_Tensor = framework.Tensor
_numbers = itertools.count()  # of borders: MindSpore tells them apart by name


def backward_of(call, by_argument):
    """What hooks the backward of one call. `by_argument`: gradients of arguments are recorded as they come."""
    return ByArgument(call) if by_argument else Backward(call)


def _guarded(told):
    def hook(*args):
        try:
            told(*args)
        except Exception:
            session.guard("recording a backward")
    return hook


def _with_tensors(pass_through, output):
    """The output with its tensors passed through; other things than tensors and tuples of them stay as they are."""
    if isinstance(output, _Tensor):
        return pass_through((output,))[0]
    if type(output) is tuple and any(isinstance(value, _Tensor) for value in output):
        return pass_through(output)
    return output


class Backward:
    """Of a cell or a function: one border around all arguments and all results."""

    __slots__ = ("call", "border")

    def __init__(self, call):
        self.call = call
        self.border = None  # None: no argument can have a gradient

    def hook_inputs(self, args):
        if not (framework.requires_grad() and any(framework.may_have_gradient(value) for value in args)):
            return args
        self.border = _make_border(lambda cell, grad_inputs, grad_outputs: self._record(grad_inputs, grad_outputs))
        self.border.register_backward_hook()
        return _pass(self.border, args)

    def hook_outputs(self, output):
        if not framework.requires_grad():
            return output
        if self.border is not None:
            output = _with_tensors(lambda values: _pass(self.border, values), output)
        before = _make_border(lambda cell, grad_outputs: self._arrived(grad_outputs))
        before.register_backward_pre_hook()
        return _with_tensors(lambda values: _pass(before, values), output)

    def _arrived(self, grad_outputs):
        self.call.begin_backward()
        if self.border is None:
            self._record((), grad_outputs)

    def _record(self, grad_inputs, grad_outputs):
        self.call.end_backward(grad_inputs, grad_outputs)


def _make_border(told):
    table = OrderedDict({0: _guarded(told)})
    border = framework.BackwardHook("msprobe.%d" % next(_numbers), None, table)
    border.msprobe_table = table  # it has a weak reference only
    return border


def _pass(border, values):
    if framework.HOOK_TAKES_TUPLE:
        hooked = border(values)
    else:
        hooked = border(*values)
        if len(values) == 1:
            hooked = (hooked,)
    for value in hooked:
        framework.allow_in_place(value)
    return hooked


class ByArgument:
    """Of an operator: every tensor has a border of its own, and gradients stand in the order in which they come."""

    __slots__ = ("call", "left", "grad_inputs", "grad_outputs")

    def __init__(self, call):
        self.call = call
        self.left = 0  # arguments whose gradients have not come
        self.grad_inputs = ()
        self.grad_outputs = ()

    def hook_inputs(self, args):
        if not framework.requires_grad():
            return args
        self.left = sum(isinstance(value, _Tensor) for value in args)
        return self._pass(args, self._input_arrived)

    def hook_outputs(self, output):
        if not framework.requires_grad():
            return output
        return _with_tensors(lambda values: self._pass(values, self._output_arrived), output)

    @staticmethod
    def _pass(values, told):
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
