# SPDX-License-Identifier: Apache-2.0
from mindspore import Tensor
from mindspore.tape import Type

from . import ops


def tensor(data):
    made = Tensor(data)
    made._device = "cpu"
    return made


def is_grad_enabled():
    return True


class _Methods:
    @property
    def device(self):
        if not hasattr(self, "_device"):
            raise ValueError("Tensor must have device")
        return self._device

    def register_hook(self, hook):
        return self._data.register_hook(hook)

    def dyn_shape(self):
        return self.shape

    def item(self):
        return self.asnumpy().item()

    def __add__(self, other):
        return ops.add(self, other)

    def __mul__(self, other):
        return ops.mul(self, other)

    def mul(self, other):
        return ops.mul(self, other)

    def mul_(self, other):
        self.assign_value(ops.mul(self, other))
        return self

    def __setitem__(self, place, value):
        self.assign_value(ops.filled(self, place, value))

    def sum(self, dim=None):
        return ops.sum(self, dim)


for _name, _method in vars(_Methods).items():
    if _name not in ("__dict__", "__weakref__", "__module__", "__doc__"):
        setattr(Tensor, _name, _method)
Type.__str__ = Type.__repr__


class Parameter(Tensor):
    def __init__(self, data):
        super().__init__(data)
        self._device = "cpu"
        self.requires_grad = True
