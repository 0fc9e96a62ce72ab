# SPDX-License-Identifier: Apache-2.0
"""Tensors inside arguments and results: in tuples, lists and dicts, at any depth.

`chosen(value, in_place)` selects tensors; in_place: it is in a list or dict of the user's program.
"""

import copy
import operator

_DEEPEST = 400


def collect(value, chosen, found, depth=0, in_place=False):
    """Appends the selected tensors to `found`, from left to right."""
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
    """The same structure with `tensors`, an iterator, in place of the selected ones. Tuples are rebuilt; lists and
    dicts are copied, or changed in place by put(container, key, new)."""
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
