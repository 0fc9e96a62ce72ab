# SPDX-License-Identifier: Apache-2.0
"""The backward of a module: gradients at its outputs and its inputs.

Tensors pass through identity nodes of the autograd graph; hooks on these report the gradients. A view (`view_as`) is
such a node, and in-place operations on it keep their meaning. Several tensors share one node of PyTorch's own kind
for module hooks, so that all their gradients arrive together, if it can allow in-place operations; otherwise each
passes through its own view.
"""

import operator

import torch

from msprobe import _native
from msprobe.core import nested, session

from . import framework

_view_as = framework.view_as
_stride = torch._C._TensorBase.stride
_is_grad_enabled = framework.is_grad_enabled

_autograd = getattr(torch._C, "_autograd", None)
_get_creation_meta = getattr(_autograd, "_get_creation_meta", None)
_set_creation_meta = getattr(_autograd, "_set_creation_meta", None)
_CreationMeta = getattr(_autograd, "CreationMeta", None)
_CAN_JOIN = None not in (_get_creation_meta, _set_creation_meta, _CreationMeta)


class Backward:
    """The state of the backward of one call."""

    __slots__ = ("call", "inputs", "grad_outputs", "grad_inputs")

    def __init__(self, call):
        self.call = call
        self.inputs = None  # number of hooked inputs; None: none needs a gradient
        self.grad_outputs = None
        self.grad_inputs = None

    def hook_inputs(self, args):
        tensors = _tensors_in(args)
        if not tensors:
            return args
        self.inputs = len(tensors)
        return _replace(args, hook_tensors(tensors, leaving, self._inputs_arrived, None))

    def hook_outputs(self, output):
        tensors = _tensors_in(output)
        if not tensors:
            return output
        return _replace(output, hook_tensors(tensors, entering, self._outputs_complete, self._outputs_arrived))

    def _outputs_arrived(self, gradients):
        self.grad_outputs = gradients
        self.call.begin_backward()

    def _outputs_complete(self, gradients):
        self._outputs_arrived(gradients)
        if self.inputs is None:
            self._record(())

    def _inputs_arrived(self, gradients):
        # Without the outputs': the gradient came another way, as in a second derivative.
        if self.grad_outputs is not None:
            self._record(gradients)

    def _record(self, grad_inputs):
        grad_outputs, self.grad_outputs = self.grad_outputs, None
        self.call.end_backward(grad_inputs, grad_outputs)


def _is_hooked(value, in_place):
    # A leaf inside the user's own list or dict stays there: it may be a parameter.
    return isinstance(value, torch.Tensor) and value.requires_grad and not (in_place and value.grad_fn is None)


def _tensors_in(value):
    found = []
    if _is_grad_enabled():
        nested.collect(value, _is_hooked, found)
    return found


def _replace(value, tensors):
    return nested.replace(value, _is_hooked, iter(tensors), operator.setitem)


def accumulation_of(parameter):
    """The node that accumulates the gradient of a parameter. PyTorch keeps it, and its hooks, only while it is
    referenced."""
    with torch.enable_grad():
        return framework.expand_as(parameter, parameter).grad_fn.next_functions[0][0]


def node_of_change(tensor):
    """The node of the operation that has just changed the tensor in place. The one that a view shows afterwards is a
    new node of the view, through which gradients pass unchanged; if the view is the whole of its base, as at the
    boundary of a module, the node of the base is the operation's."""
    base = tensor._base
    if base is not None and base.shape == tensor.shape and _stride(base) == _stride(tensor):
        behind = base.grad_fn
        if type(behind).__name__ == "CopySlices":
            return behind
    return tensor.grad_fn


# Which gradients of a node count: for outputs those that come in, for inputs those that go on.
def entering(grad_inputs, grad_outputs):
    return grad_outputs


def leaving(grad_inputs, grad_outputs):
    return grad_inputs


def hook_tensors(tensors, choose, complete, progress):
    """Hooks the nodes behind the tensors. In the backward `complete` is called with all gradients; before that, if
    they arrive one by one, `progress` with those that have arrived."""
    if len(tensors) == 1:
        return [_hook_node(_view_as(tensors[0], tensors[0]), choose, complete)]
    if _CAN_JOIN:
        return _hook_joined(tensors, choose, complete)
    return _hook_each(tensors, choose, complete, progress)


def _hook_node(tensor, choose, told):
    def hook(grad_inputs, grad_outputs):
        try:
            told(choose(grad_inputs, grad_outputs))
        except Exception:
            session.guard("recording the backward of a module")

    tensor.grad_fn.register_hook(hook)
    return tensor


class _Border(torch.autograd.Function):
    """The identity. A gradient that does not come stays away, where PyTorch's own function for this passes zeros on: a
    parameter that had none would then have one, and the optimizer would move it."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *gradients):
        return gradients


def _hook_joined(tensors, choose, complete):
    # Quietly: functions of PyTorch's own Python part that this calls are none of the user's.
    hooked = _native.call_quietly(_Border.apply, *tensors)
    for tensor in hooked:
        if tensor._base is not None and _get_creation_meta(tensor) != _CreationMeta(0):
            _set_creation_meta(tensor, _CreationMeta(0))
    _hook_node(hooked[0], choose, complete)
    return list(hooked)


class Together:
    """Gradients that come one by one, until the last one has come or the backward ends."""

    def __init__(self, count, complete, progress):
        self._count = count
        self._complete = complete
        self._progress = progress
        self._come = {}

    def at(self, position):
        def told(gradients):
            if not self._come:
                torch.autograd.Variable._execution_engine.queue_callback(self._end)
            self._come[position] = gradients[0]
            if len(self._come) == self._count:
                self._end()
            elif self._progress is not None:
                self._progress(self._gradients())
        return told

    def _gradients(self):
        return tuple(self._come.get(position) for position in range(self._count))

    def _end(self):
        if self._come:
            gradients = self._gradients()
            self._come.clear()
            self._complete(gradients)


def _hook_each(tensors, choose, complete, progress):
    together = Together(len(tensors), complete, progress)
    return [_hook_node(_view_as(tensor, tensor), choose, together.at(position))
            for position, tensor in enumerate(tensors)]
