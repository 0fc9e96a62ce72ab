# SPDX-License-Identifier: Apache-2.0
"""Megatron's pipelines: the micro-batch to which an event belongs, and outputs whose memory is released early."""

import functools
import sys

import torch

from msprobe import _native
from msprobe.core import session

_SCHEDULES = "megatron.core.pipeline_parallel.schedules"

_installed = False
_counts = {"forward": -1, "backward": -1}


def install():
    """Does nothing unless Megatron's schedules are loaded."""
    global _installed
    schedules = sys.modules.get(_SCHEDULES)
    if _installed or schedules is None:
        return
    _installed = True
    for name, make in (("forward_step", _counting("forward")), ("backward_step", _counting("backward")),
                       ("deallocate_output_tensor", _deallocating)):
        function = getattr(schedules, name, None)
        if callable(function):
            _replace_everywhere(name, function, make(function))


def forget():
    """Called at the end of a step."""
    _counts.update(forward=-1, backward=-1)


def _replace_everywhere(name, function, wrapper):
    """Replaces the function, also in modules that imported it by name."""
    functools.update_wrapper(wrapper, function)
    for module in list(sys.modules.values()):
        try:
            if getattr(module, "__dict__", {}).get(name) is function:
                setattr(module, name, wrapper)
        except Exception:  # not a real module
            continue


def _counting(direction):
    def make(function):
        def wrapper(*args, **kwargs):
            _counts[direction] += 1
            if session.forward_switch[0] or session.backward_switch[0]:
                _native.set_micro_step(_counts[direction])
            return function(*args, **kwargs)
        return wrapper
    return make


def _deallocating(function):
    """Makes the function accept the output of a hooked module, which is a view: Megatron refuses views."""
    def wrapper(out, deallocate_pipeline_outputs=False):
        if deallocate_pipeline_outputs and isinstance(out, torch.Tensor) and out._base is not None:
            out.data = torch.empty((1,), device=out.device, dtype=out.dtype)
            return None
        return function(out, deallocate_pipeline_outputs)
    return wrapper
