# SPDX-License-Identifier: Apache-2.0
"""Tensors, and the tape of what was computed of them."""

import numpy

_tape = []     # (outputs, inputs, gradients of the inputs by those of the outputs), in the order of the calls
depth = [0]    # of value_and_grad()
enabled = [True]


class Type:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name.rstrip("_").capitalize()

    def __repr__(self):
        return "mindspore." + self.name


class Number(Type):
    pass


class _Float(Number):
    pass


class _Int(Number):
    pass


float32, bfloat16, int64, bool_ = _Float("float32"), _Float("bfloat16"), _Int("int64"), _Int("bool_")
float16, float64 = _Float("float16"), _Float("float64")


class _Value:
    """The current value of a tensor object."""

    def __init__(self, array):
        self.array = array
        self.hooks = {}


class TensorPy:
    __slots__ = ("value",)  # which is no attribute that a program sees

    def register_hook(self, hook):
        number = len(self.value.hooks)
        self.value.hooks[number] = hook
        return number


class Tensor(TensorPy):
    def __init__(self, data):
        array = data.value.array if isinstance(data, Tensor) else numpy.array(data)
        self.value = _Value(array.astype("float32") if array.dtype == "float64" else array)

    @property
    def dtype(self):
        if self.value.array.dtype == "float16":
            return float16
        return {"f": float32, "b": bool_}.get(self.value.array.dtype.kind, int64)

    @property
    def size(self):
        return self.value.array.size

    @property
    def shape(self):
        return self.value.array.shape

    def asnumpy(self):
        return self.value.array

    def astype(self, dtype):
        return Tensor(self.value.array.astype(dtype.name.rstrip("_")))

    def max(self):
        return Tensor(self.value.array.max())

    def min(self):
        return Tensor(self.value.array.min())

    def mean(self):
        return Tensor(self.value.array.mean())

    def norm(self):
        return Tensor(numpy.linalg.norm(self.value.array.ravel()))

    def data_ptr(self):
        return self.value.array.__array_interface__["data"][0]

    def assign_value(self, other):
        self.value = other.value

    def register_hook(self, hook):
        return TensorPy.register_hook(self, hook)


class Parameter(Tensor):
    pass


def computed(array, inputs, gradients):
    """A tensor that is a result. gradients(g) -> those of the inputs."""
    result = Tensor(numpy.asarray(array))
    record([result], inputs, lambda arrived: gradients(arrived[0]))
    return result


def record(outputs, inputs, gradients):
    if depth[0] and enabled[0]:
        _tape.append(([tensor.value for tensor in outputs], [tensor.value for tensor in inputs], gradients))


def _tell(value, gradient):
    for hook in value.hooks.values():
        hook(Tensor(gradient))


def _backward(loss):
    come = {loss.value: numpy.ones_like(loss.value.array)}
    made = {id(value) for outputs, _, _ in _tape for value in outputs}
    for outputs, inputs, gradients in reversed(_tape):
        if not any(value in come for value in outputs):
            continue
        arrived = [come.get(value, numpy.zeros_like(value.array)) for value in outputs]
        for value, gradient in zip(outputs, arrived):
            _tell(value, gradient)
        for value, gradient in zip(inputs, gradients(arrived)):
            come[value] = come[value] + gradient if value in come else gradient
    for value, gradient in come.items():
        if id(value) not in made:
            _tell(value, gradient)
    return come


def value_and_grad(function, grad_position=0, weights=None):
    """The gradients of the weights, else that of the argument at the position."""
    def run(*args):
        _tape.clear()
        depth[0] += 1
        try:
            result = function(*args)
            come = _backward(result)
        finally:
            depth[0] -= 1
        wanted = weights if weights is not None else [args[grad_position]]
        found = [Tensor(come.get(tensor.value, numpy.zeros_like(tensor.value.array))) for tensor in wanted]
        return result, tuple(found) if weights is not None else found[0]
    return run
