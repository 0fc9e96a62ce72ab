# SPDX-License-Identifier: Apache-2.0
"""Tensors inside of arguments and results: in tuples, lists and dicts, however deep.

`chosen(value, in_place)` tells which tensors are meant; in_place: it stands in a list or dict of the program's own.
"""

import copy
import operator

_DEEPEST = 400


def collect(value, chosen, found, depth=0, in_place=False):
    """Appends the chosen tensors to `found`, from left to right."""
    if depth > _DEEPEST:
        return
    if chosen(value, in_place):
        found.append(value)
    elif isinstance(value, tuple):
        for element in value:
            collect(element, chosen, found, depth + 1)
    elif isinstance(value, list):
        for element in value:
            collect(element, chosen, found, depth + 1, True)
    elif isinstance(value, dict):
        for element in value.values():
            collect(element, chosen, found, depth + 1, True)


def replace(value, chosen, tensors, put=None, depth=0, in_place=False):
    """The same structure with `tensors`, an iterator, in the place of the chosen ones. Tuples are made anew; lists and
    dicts are copied, or put(container, key, new) changes them as they are."""
    if depth > _DEEPEST:
        return value
    if chosen(value, in_place):
        return next(tensors)
    if isinstance(value, tuple):
        elements = [replace(element, chosen, tensors, put, depth + 1) for element in value]
        if all(new is old for new, old in zip(elements, value)):
            return value
        return type(value)(*elements) if hasattr(value, "_fields") else type(value)(elements)
    if isinstance(value, (list, dict)):
        changed = []
        for key, element in enumerate(value) if isinstance(value, list) else value.items():
            new = replace(element, chosen, tensors, put, depth + 1, True)
            if new is not element:
                changed.append((key, new))
        if changed and put is None:
            value = copy.copy(value)
        for key, new in changed:
            (put or operator.setitem)(value, key, new)
    return value
