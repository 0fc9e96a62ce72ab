# SPDX-License-Identifier: Apache-2.0
"""The backward of a module: gradients at its outputs and its inputs.

Nothing is put into the autograd graph: an additional node would change the order in which gradients are added, and so
their last bits. Hooks on the nodes that are there report what enters the module and what leaves it (_native.Gradients).
"""

import torch

from msprobe import _native
from msprobe.core import nested, session

from . import framework

_is_grad_enabled = framework.is_grad_enabled
_base = torch._C._TensorBase
_stride, _add, _add_, _sub_, _any, _to = _base.stride, _base.add, _base.add_, _base.sub_, _base.any, _base.to


# Gradients(receiver) of one call: see _native. A monitor's receiver does not use notes: plain().
Gradients = _native.Gradients


class Backward:
    """The backward of a recorded call."""

    __slots__ = ("_gradients",)

    def __init__(self, call):
        self._gradients = Gradients(call)

    def hook_inputs(self, args, kwargs):
        self._gradients.enter(_tensors_in(args), _tensors_in(kwargs))
        return args

    def hook_outputs(self, output):
        self._gradients.leave(_tensors_in(output))
        return output


class OnceHook:
    """A hook for a node of the autograd graph: passes its gradients to `work` when they arrive for the first time while
    backwards are recorded. An exception goes to the log of errors, as a failure in `what`."""

    def __init__(self, work, what):
        self._work = work
        self._what = what

    def __call__(self, grad_inputs, grad_outputs):
        work, self._work = self._work, None
        if work is None or not session.backward_switch[0]:
            return
        try:
            _native.call_quietly(work, grad_inputs, grad_outputs)
        except Exception:
            session.guard(self._what)


def _is_hooked(value, in_place):
    # A leaf inside the user's own list or dict is left out, because it may be a parameter.
    return isinstance(value, torch.Tensor) and value.requires_grad and not (in_place and value.grad_fn is None)


def _tensors_in(value):
    found = []
    if _is_grad_enabled():
        nested.collect(value, _is_hooked, found)
    return found


def accumulation_of(parameter):
    """The node that accumulates the gradient of a parameter. PyTorch keeps it, and its hooks, only while it is
    referenced."""
    with torch.inference_mode(False), torch.enable_grad():  # the first call of a module may be in either mode
        return framework.expand_as(parameter, parameter).grad_fn.next_functions[0][0]


def node_of_change(tensor):
    """The node of the operation that has just changed the tensor in place. The one that a view shows afterwards is a
    new node of the view, through which gradients pass unchanged; if the view is the whole of its base, as PyTorch's
    own hooks of a module's backward make it, the node of the base is the operation's."""
    base = tensor._base
    if base is not None and base.shape == tensor.shape and _stride(base) == _stride(tensor):
        behind = base.grad_fn
        if type(behind).__name__ == "CopySlices":
            return behind
    return tensor.grad_fn


class Noted:
    """A gradient that also has other parts than the one asked for, and a note about them."""

    __slots__ = ("tensor", "note")

    def __init__(self, tensor, note):
        self.tensor = tensor
        self.note = note


def plain(gradient):
    return gradient.tensor if type(gradient) is Noted else gradient


def _combine(total, shares, inside, note):
    """Combines the shares of a gradient, in its own dtype: it may arrive in several shares, or include those of uses
    inside the module. Sums are computed in double precision, because the training's order of addition is unknown here."""
    with torch.no_grad():
        if total is None:
            total, *shares = shares
        if len(shares) == 1:
            total = _add(total, shares[0])  # rounded once, in either precision
        elif shares or inside:
            total = _sum(total, shares, inside)
    if total is None:
        return None
    return Noted(total, note) if note else total


def _sum(total, shares, inside):
    if total.dtype.is_complex:
        wide = torch.complex128
    else:  # some devices do not have float64
        wide = torch.float64 if total.device.type in ("cpu", "cuda") else torch.float32
    wide = _to(total, wide, copy=True)
    for share in shares:
        _add_(wide, share)
    for share in inside:
        _sub_(wide, share)
    if inside and not _any(wide):
        return None  # there are no uses outside
    return _to(wide, total.dtype)


_native.bind_autograd(getattr(getattr(torch._C, "_autograd", None), "_get_sequence_nr", None), accumulation_of, _combine,
                      torch.autograd.Variable._execution_engine.queue_callback)
