# SPDX-License-Identifier: Apache-2.0
"""How values are recorded that are not plain numbers, strings, containers or plain tensors, in any framework.

A front end's describe(value) returns None (null), JSON text (a leaf), a Record (a tensor that is not plain), or a
simpler value to continue with: a plain container or a plain tensor.
"""

import dataclasses
import json
import sys

from msprobe import _native

DTYPE_OTHER = _native.DTYPE_OTHER
NUMPY_DTYPES = {name: number for name, (number, _, has_numpy) in _native.dtypes.items() if has_numpy}


class Record(tuple):
    """(elements, type, dtype text, dtype number, shape, requires_grad, extra JSON, statistics, deferred
    [, source[, later]])

    elements: a plain tensor on the host or a NumPy array with the elements, or a plain tensor of which
    _native.gpu_takes() said so; or None, in which case dtype number and shape are used.
    deferred: called later with the slot for the statistics; None if they are known or there are none.
    source: the tensor that owns these elements, or whose copy they are: if it has been saved, it is not written
    again. later: deferred gets the slot for _native.fill_tensor(), which brings the elements.
    """

    __slots__ = ()


class Json(str):
    """A leaf that is already JSON, inside a container that describe() returns."""

    __slots__ = ()


def leaf(value, plain):
    return json.dumps({"type": type(value).__name__, "value": plain})


def fields_of_tuple(value):
    fields = getattr(value, "_fields", None)
    if isinstance(fields, tuple):  # a namedtuple
        return {str(name): part for name, part in zip(fields, value)}
    return tuple(value) if type(value) is not tuple else value


def plain_dict(value):
    if dataclasses.is_dataclass(value):
        return fields_of_dataclass(value)
    return dict(value.items())


def fields_of_dataclass(value):
    return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}


def slice_leaf(value, number_or_none):
    return json.dumps({"type": "slice", "value": [number_or_none(part) for part in
                                                  (value.start, value.stop, value.step)]})


def other(value):
    """Handles types that no other rule covers."""
    if value is Ellipsis:
        return json.dumps({"type": "ellipsis", "value": "..."})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_of_dataclass(value)
    return None


# ---------------------------------------------------------------------- NumPy


def _numpy_scalar(value):
    try:
        return leaf(value, value.item())
    except TypeError:
        return None


def numpy_array(value):
    native = value.dtype.newbyteorder("=")
    number = NUMPY_DTYPES.get(str(native), DTYPE_OTHER)
    elements = None
    if number != DTYPE_OTHER and value.size:
        elements = value if value.dtype.isnative else value.astype(native, order="C")
    return Record((elements, "numpy.ndarray", str(value.dtype), number, value.shape, None, None, None, None))


# ---------------------------------------------------------------------- rows (type, function)


def numpy_types():
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return []
    return [(numpy.ndarray, numpy_array), (numpy.generic, _numpy_scalar)]


# The order matters: the first class that fits a value is used.
PLAIN_TYPES = [
    (bool, lambda value: leaf(value, bool(value))),
    (int, lambda value: leaf(value, int(value))),
    (float, lambda value: leaf(value, float(value))),
    (str, lambda value: leaf(value, str.__str__(value))),
]
CONTAINER_TYPES = [(tuple, fields_of_tuple), (list, list), (dict, plain_dict)]
