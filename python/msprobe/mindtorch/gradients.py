# SPDX-License-Identifier: Apache-2.0
"""Records the backward of a call under MSAdapter through MindSpore's borders, also around tensors inside lists and
dicts.

A border returns a different tensor object. The attributes that MSAdapter keeps on the first object are copied to it;
if the call writes to it, as in-place operations do, the first object is updated, too.
"""

import functools
import operator

from msprobe.core import nested, wrapping
from msprobe.mindspore import gradients

from . import framework


# id(tensor) -> whether it was written to, for tensors that replace arguments of a call.
_written = {}


def _noting(write):
    @functools.wraps(write)
    def noting(tensor, *args, **kwargs):
        if id(tensor) in _written:
            _written[id(tensor)] = True
        return write(tensor, *args, **kwargs)
    return noting


def _places_of_writes(group):
    if group == "tensor":
        return [framework.Tensor]
    kernels = framework.space("._op_prim.cpu.legacy")
    return [] if kernels is None else [kernels]


# Notes writes while something is recorded: assignments, writes by a kernel, and requests for an address.
writes = wrapping.Registry(lambda: {"tensor": ["assign_value", "data_ptr"], "kernel": ["assign"]}, _places_of_writes,
                           lambda write, **place: _noting(write), None)


def backward_of(call, by_argument):
    return gradients.ByArgument(call) if by_argument else OfFunction(call)


class Backward(gradients.Backward):
    """The backward of a module."""

    __slots__ = ("stand_ins", "replaced")

    def __init__(self, call):
        super().__init__(call)
        self.stand_ins = {}  # id(tensor that the call got) -> (that tensor, the original)
        self.replaced = []   # (list or dict of the program, key, original, replacement)

    def __del__(self):
        self._forget()

    def _forget(self):
        for number in self.stand_ins:
            _written.pop(number, None)
        self.stand_ins = {}

    def is_hooked(self, value, in_place):
        return isinstance(value, framework.Tensor)

    def put(self, container, key, new):
        self.replaced.append((container, key, container[key], new))
        container[key] = new

    def pass_through(self, border, tensors):
        passed = framework.for_writing(super().pass_through(border, tensors))
        for tensor, other in zip(tensors, passed):
            vars(other).update(vars(tensor))
        return passed

    def enter(self, tensors):
        entered = super().enter(tensors)
        self.stand_ins = {id(other): (other, tensor) for tensor, other in zip(tensors, entered)}
        _written.update(dict.fromkeys(self.stand_ins, False))
        return entered

    def leave(self, tensors):
        left = super().leave(tensors)
        return [self._back(tensor, other) for tensor, other in zip(tensors, left)]

    def _back(self, tensor, left):
        """Returns the tensor that the program gets for a result: its own tensor, if the call has written to that one."""
        if isinstance(tensor, framework.Parameter):
            return tensor  # perhaps from a list that the module keeps
        if not self._is_written(tensor):
            return left
        _, given = self.stand_ins[id(tensor)]
        _written[id(tensor)] = False
        given.assign_value(left)
        return given

    def _is_written(self, tensor):
        return id(tensor) in self.stand_ins and _written.get(id(tensor), False)

    def hook_outputs(self, output):
        replaced, self.replaced = reversed(self.replaced), []  # reversed, because a list may occur twice
        for container, key, tensor, stand_in in replaced:
            if _at(container, key) is stand_in:
                container[key] = tensor
        try:
            return super().hook_outputs(output)
        finally:
            for other, given in self.stand_ins.values():
                if self._is_written(other):
                    given.assign_value(other)
            self._forget()


def _at(container, key):
    try:
        return container[key]
    except LookupError:
        return None


class OfFunction(Backward):
    """The backward of a function: a result that is an unchanged argument has no backward."""

    __slots__ = ("unchanged",)

    def __init__(self, call):
        super().__init__(call)
        self.unchanged = ()

    def is_hooked(self, value, in_place):
        return isinstance(value, framework.Tensor) and id(value) not in self.unchanged

    def _is_returned(self, value, in_place):
        # Writes on devices other than the host are not noted.
        return framework.ON_HOST and id(value) in self.stand_ins and not self._is_written(value)

    def hook_outputs(self, output):
        returned = []
        nested.collect(output, self._is_returned, returned)
        given = [self.stand_ins[id(value)][1] for value in returned]
        self.unchanged = set(map(id, given))
        return super().hook_outputs(nested.replace(output, self._is_returned, iter(given), operator.setitem))
