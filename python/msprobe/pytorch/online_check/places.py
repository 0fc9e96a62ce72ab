# SPDX-License-Identifier: Apache-2.0
"""Where a call is made: the module of the model, the line of the user's code, the stack."""

import linecache
import os
import sys

import torch

from msprobe.core import stacks

_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_FRAMEWORK = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


class Modules:
    """The modules of the models, by name."""

    def __init__(self):
        self._names = {}  # id(module) -> (the module, its name)

    def know(self, models):
        for index, model in enumerate(models):
            prefix = "%d." % index if len(models) > 1 else ""
            for name, module in model.named_modules():
                self._names[id(module)] = module, prefix + name

    def named(self, module):
        """`layers.1.mlp (MLP)`"""
        known = self._names.get(id(module))
        kind = type(module).__name__
        if known is None or known[0] is not module or not known[1]:
            return kind
        return "%s (%s)" % (known[1], kind)


def key(frame):
    """Equal for calls from the same place."""
    positions = []
    while frame is not None:
        positions.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return hash(tuple(positions))


def caller():
    """The innermost frame that is not of this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


def described(frame, modules):
    """(the innermost module, the innermost line outside of PyTorch, the frames as stack.json has them)"""
    place = where = ""
    outer = frame
    while outer is not None and not (place and where):
        code = outer.f_code
        if not place and code.co_argcount and code.co_varnames[0] == "self":
            owner = outer.f_locals.get("self")
            if isinstance(owner, torch.nn.Module):
                place = modules.named(owner)
        if not where and not code.co_filename.startswith(_FRAMEWORK):
            line = linecache.getline(code.co_filename, outer.f_lineno, outer.f_globals).strip()
            if line:
                where = "%s:%d   %s" % (code.co_filename, outer.f_lineno, line)
        outer = outer.f_back
    return place, where, stacks.format_stack(frame)[1]
