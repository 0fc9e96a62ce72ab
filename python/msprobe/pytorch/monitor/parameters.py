# SPDX-License-Identifier: Apache-2.0
"""The watched parameters, and their gradients before reduction over the ranks."""

import torch

from msprobe.core.common import log
from msprobe.core.monitor.engine import guard, guarded
from msprobe.core.monitor.watch import Calls
from msprobe.pytorch import framework
from msprobe.pytorch.gradients import accumulation_of

from . import deepspeed, fsdp, megatron
from .watch import gradient_of


class Parameter:
    """A parameter with its name. `is_duplicate`: another rank of its group reports its reduced gradient."""

    __slots__ = ("tensor", "stage", "name", "is_duplicate", "micro_batches", "arrivals")

    def __init__(self, tensor, stage, name, is_duplicate, micro_batches):
        self.tensor = tensor
        self.stage = stage
        self.name = name
        self.is_duplicate = is_duplicate
        self.micro_batches = micro_batches
        self.arrivals = Calls(micro_batches)


def find(watch, models, tp_group=None, dp_group=None):
    """Returns the Parameter of each selected tensor. A tensor that several modules share has its first name."""
    found = {}
    copies = _Copies(tp_group, dp_group)
    for stage, model in enumerate(models):
        for name, tensor in model.named_parameters():
            if tensor.requires_grad and tensor not in found and watch.targets.has_parameter(stage, name):
                found[tensor] = Parameter(tensor, stage, watch.parameter_names.of(stage, name), copies.is_one(tensor),
                                          watch.micro_batches[stage])
    return found


class _Copies:
    """Finds parameters whose reduced gradient another rank has, too."""

    def __init__(self, tp_group, dp_group):
        self._everything = self._is_later(dp_group)
        self._not_split = self._is_later(tp_group)

    @staticmethod
    def _is_later(group):
        if group is None:
            return False
        try:
            return torch.distributed.get_rank(group) > 0
        except Exception:
            guard("getting the rank in a process group")
            return False

    def is_one(self, tensor):
        return self._everything or (self._not_split and not getattr(tensor, "tensor_model_parallel", False))


class Unreduced:
    """Reports a gradient when it is complete on this rank. The code that reduces it determines how this is detected."""

    def __init__(self, parameters, each, main_gradients, collecting, told):
        """`each`: for every micro-batch, otherwise for the last one. told(parameter, gradient, micro batch, task)."""
        self._parameters = parameters
        self._each = each
        self._main_gradients = main_gradients
        self._collecting = collecting
        self._told = told
        self._sources = []  # objects with remove()

    def attach(self, models, optimizers):
        # Code that shards or buckets gradients knows when they are complete; the remaining parameters get their own hooks.
        left = dict(self._parameters)
        self._look(fsdp.find_flat, models, left, self._arrived)
        self._look(fsdp.find_sharded, models, left, self._arrived)
        if not self._each:
            for optimizer in optimizers:
                self._look(deepspeed.find_buckets, optimizer, left, self._arrived)
            if self._main_gradients:
                self._look(megatron.find_buckets, left, lambda one: self._arrived(one, one.main_grad))
        for parameter in left.values():
            accumulation = guarded("hooking the gradient of " + parameter.name, _Accumulation, parameter.tensor,
                                   self._accumulated)
            self._sources += [accumulation] if accumulation is not None else []

    def _look(self, find, *args):
        self._sources += guarded("looking for what reduces gradients", find, *args) or []

    def step_ends(self):
        for parameter in self._parameters.values():
            parameter.arrivals.reset()

    def remove(self):
        for source in self._sources:
            guarded("removing a hook", source.remove)
        self._sources = []

    def _accumulated(self, tensor):
        if not self._collecting():
            return
        parameter = self._parameters[tensor]
        number = parameter.arrivals.next()
        if not self._each and number != parameter.micro_batches - 1:
            return
        gradient = gradient_of(tensor, self._main_gradients)
        if gradient is None:
            log.warn_once("monitor: %s has no gradient after its backward" % parameter.name)
            return
        self._told(parameter, gradient, number, "acc_grad")

    def _arrived(self, tensor, gradient):
        """Called by the code that reduces the gradient: for one micro-batch, or for all if it reduces only once."""
        parameter = self._parameters.get(tensor)
        if parameter is not None and gradient is not None and self._collecting():
            self._told(parameter, gradient, parameter.arrivals.next(), "pre_grad")


class _Accumulation:
    """The hook at the end of a parameter's own backward."""

    def __init__(self, tensor, told):
        def arrived(*unused):
            guarded("the gradient of a parameter", told, tensor)

        if framework.HAS_POST_ACCUMULATE_HOOKS and not hasattr(tensor, "main_grad"):
            self._node = None
            self._handle = tensor.register_post_accumulate_grad_hook(arrived)
        else:  # after the hook that adds to the main gradient
            self._node = accumulation_of(tensor)
            self._handle = self._node.register_hook(arrived)

    def remove(self):
        self._handle.remove()
        self._node = None
