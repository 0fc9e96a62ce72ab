# SPDX-License-Identifier: Apache-2.0
"""Tensors inside arguments and results: lists, tuples, dicts of them."""

import torch

_DEEPEST = 32


def changed(value, change, depth=0):
    """The same structure with change(tensor) in place of each tensor; parts without tensors are not copied."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if depth > _DEEPEST:
        return value
    if isinstance(value, (tuple, list)):
        elements = [changed(element, change, depth + 1) for element in value]
        if all(new is old for new, old in zip(elements, value)):
            return value
        if isinstance(value, list):
            return elements
        if hasattr(value, "_fields"):
            return type(value)(*elements)
        # Results with names, as of topk, are made of one sequence.
        return type(value)(elements)
    if isinstance(value, dict):
        elements = {key: changed(element, change, depth + 1) for key, element in value.items()}
        return value if all(elements[key] is value[key] for key in value) else elements
    return value


def tensors_in(value, found=None, depth=0):
    """All tensors, in order."""
    if found is None:
        found = []
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif depth <= _DEEPEST:
        if isinstance(value, (tuple, list)):
            for element in value:
                tensors_in(element, found, depth + 1)
        elif isinstance(value, dict):
            for element in value.values():
                tensors_in(element, found, depth + 1)
    return found


def others_in(values, kind):
    """Objects of a kind directly among the arguments."""
    return [value for value in values if isinstance(value, kind)]
