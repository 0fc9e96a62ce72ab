# SPDX-License-Identifier: Apache-2.0
"""Perturbations and ratios of NumPy arrays. bfloat16 is in arrays of float32, whose last 16 bits are 0."""

import math

import numpy

from msprobe.core.free_benchmark import limits

# The last bit of an element, by dtype, as a number of the integers of its array's size.
_LAST_BIT = {"bfloat16": numpy.int32(1 << 16), "float16": numpy.int16(1), "float32": numpy.int32(1), "float64": numpy.int64(1)}


def _add_noise(array, dtype):
    noise = array.dtype.type(limits.NOISE[dtype])
    return numpy.where(numpy.abs(array) > limits.root_of_noise(dtype), array + noise, array)


def _flip_bit(array, dtype):
    bit = _LAST_BIT[dtype]
    flipped = (array.view(bit.dtype) ^ bit).view(array.dtype)
    return numpy.where((numpy.abs(array) > numpy.finfo(array.dtype).tiny) & numpy.isfinite(array), flipped, array)


def _exchange(array, dtype):
    flat = array.reshape(-1).copy()
    flat[[0, -1]] = flat[[-1, 0]]
    return flat.reshape(array.shape)


_PERTURBATIONS = {"add_noise": _add_noise, "bit_noise": _flip_bit, "change_value": _exchange,
                  "no_change": lambda array, dtype: array}


def perturbed(mode, array, dtype):
    return numpy.ascontiguousarray(_PERTURBATIONS[mode](array, dtype)).reshape(array.shape)


def ratio(first, second, floor):
    """The largest ratio of elements of two arrays of the same shape: 1 if they are equal, infinite if only one is NaN.
    FLIPPED if a sign changes beyond the floor."""
    if not first.size:
        return 1.0
    wide = numpy.float64 if numpy.float64 in (first.dtype, second.dtype) else numpy.float32
    first, second = first.astype(wide), second.astype(wide)
    with numpy.errstate(all="ignore"):
        if numpy.nan_to_num(first * second, nan=0.0).min() < -floor * floor:
            return limits.FLIPPED
        quotient = numpy.maximum(numpy.abs(first), wide(floor)) / numpy.maximum(numpy.abs(second), wide(floor))
    if (numpy.isnan(first) != numpy.isnan(second)).any():
        return math.inf
    quotient = quotient[~numpy.isnan(quotient)]
    if not quotient.size:
        return 1.0
    low, high = float(quotient.min()), float(quotient.max())
    return max(high, 1.0 / low) if low else math.inf
