# SPDX-License-Identifier: Apache-2.0
"""One call that is judged: it is sent when it is made, and its gradients when they arrive."""

import torch

from .. import gradients
from ..free_benchmark import structures, surroundings
from . import entries

_MOST_OF_A_CALL = 1 << 30  # limit for the bytes of its tensors


def _versions(tensors):
    return [None if tensor.is_inference() else tensor._version for tensor in tensors]


def _check_size(tensors):
    if sum(tensor.numel() * tensor.element_size() for tensor in tensors) > _MOST_OF_A_CALL:
        raise entries.NotSent("its tensors take more than 1 GiB")


def _first_tensor(result):
    """Returns the tensor whose backward represents the call's, as in a dump."""
    while isinstance(result, (tuple, list)) and result:
        result = result[0]
    if isinstance(result, dict):
        result = next((one for one in result.values() if isinstance(one, torch.Tensor)), None)
    return result if isinstance(result, torch.Tensor) else None


class Attempt:
    """A call that is judged, beginning before it is made."""

    def __init__(self, file, call, named, args, kwargs, tensors):
        self.call = call
        self.named = named  # (type, name, number)
        self.name = "%s.%s.%d" % named
        self.tensors = tensors
        self._generators = surroundings.Generators({tensor.device: None for tensor in tensors},
                                                   structures.others_in(list(args) + list(kwargs.values()),
                                                                        torch.Generator))
        self._random = self._generators.states()
        self._before = {id(tensor): version for tensor, version in zip(tensors, _versions(tensors))}
        self.part = entries.Part(file, self.name + ".forward")

    def begin(self, args, kwargs):
        """Writes the arguments into the file before the call, which may change them. Raises NotSent if the call cannot
        be sent."""
        self.part.begin()
        if not all(map(entries.is_plain, self.tensors)):
            raise entries.NotSent("its arguments hold tensors of subclasses or other layouts")
        _check_size(self.tensors)
        self.part.add_list("input_args", args, "input")
        self.part.add_mapping("input_kwargs", kwargs, "kwargs")
        self.part.end()

    def finish(self, result):
        """Writes the result into the file after the call. Raises NotSent, too."""
        if not surroundings.same_states(self._generators.states(), self._random):
            raise entries.NotSent("its result is random")
        _check_size(structures.tensors_in(result))
        self.part.begin()
        self.part.add_result(result)
        self.part.end()

    def node(self, result):
        """Returns the node whose backward computes the call's gradients; None if there is no such node."""
        tensor = _first_tensor(result)
        if tensor is None or not tensor.requires_grad or not torch.is_grad_enabled():
            return None
        if id(tensor) not in self._before or not any(tensor is one for one in self.tensors):
            return tensor.grad_fn
        if tensor.is_inference() or tensor._version == self._before[id(tensor)]:
            return None  # the call returned an argument unchanged
        return gradients.node_of_change(tensor)
