# SPDX-License-Identifier: Apache-2.0
import numpy

from mindspore.tape import Tensor, computed

__all__ = ["add", "cat", "dyn_shape", "mul", "sum", "zeros"]


def _result(array, tensors, gradients):
    """As the functions of MSAdapter: all tensors must be on one device, and the result is there, too."""
    device, = {tensor.device for tensor in tensors}
    result = computed(array, tensors, gradients)
    result._device = device
    return result


def _array(value):
    return value.asnumpy() if isinstance(value, Tensor) else value


def _reduced(gradient, shape):
    """The gradient of an operand that was broadcast."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    return gradient.sum(axis=tuple(at for at, size in enumerate(shape) if size == 1 != gradient.shape[at]), keepdims=True)


def add(input, other):
    tensors = [value for value in (input, other) if isinstance(value, Tensor)]
    return _result(_array(input) + _array(other), tensors, lambda g: [_reduced(g, tensor.shape) for tensor in tensors])


def mul(input, other):
    tensors = [value for value in (input, other) if isinstance(value, Tensor)]
    factors = [_array(other), _array(input)]
    return _result(_array(input) * _array(other), tensors,
                   lambda g: [_reduced(g * factor, tensor.shape) for tensor, factor in zip(tensors, factors)])


def cat(tensors, dim=0):
    ends = numpy.cumsum([tensor.shape[dim] for tensor in tensors])[:-1]
    return _result(numpy.concatenate([tensor.asnumpy() for tensor in tensors], dim), list(tensors),
                   lambda g: numpy.split(g, ends, dim))


def sum(input, dim=None):
    shape = input.shape
    return _result(numpy.asarray(input.asnumpy().sum(dim)), [input],
                   lambda g: [numpy.broadcast_to(g if dim is None else numpy.expand_dims(g, dim), shape).copy()])


def filled(input, place, value):
    array = input.asnumpy().copy()
    array[place] = value
    kept = numpy.ones_like(array)
    kept[place] = 0
    return _result(array, [input], lambda g: [g * kept])


def dyn_shape(input):
    return input.shape


def zeros(*shape):
    made = Tensor(numpy.zeros(shape, "float32"))
    made._device = "cpu"
    return made
