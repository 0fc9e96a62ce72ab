# SPDX-License-Identifier: Apache-2.0
"""Reads the state that optimizers hold for a parameter: its copy in full precision, its moments, its reduced gradient.
The class name selects the reader, so that nothing of Megatron or DeepSpeed needs to be imported."""

import torch

from . import deepspeed


def reader_of(optimizer, gradient_of):
    """Returns a reader; gradient_of(parameter) returns the gradient from the model."""
    members = getattr(optimizer, "chained_optimizers", None) or _contained(optimizer)
    if members:
        return _Chained([reader_of(member, gradient_of) for member in members])
    kind = _KINDS.get(type(optimizer).__name__, _Plain)
    return kind(optimizer, gradient_of)


def _contained(optimizer):
    """Returns the optimizers inside a container such as TorchTitan's, whose own state stays empty."""
    members = getattr(optimizer, "optimizers", None)
    return members if isinstance(members, (list, tuple)) and all(hasattr(one, "param_groups") for one in members) else None


def _flat(groups):
    return [tensor for group in groups or () for tensor in group]


class _Plain:
    """For optimizers that work on the model's parameters themselves."""

    def __init__(self, optimizer, gradient_of):
        self.optimizer = optimizer
        self._gradient_of = gradient_of

    def refresh(self):
        """Called when a step begins."""

    def has(self, parameter):
        """Whether this optimizer has the parameter's reduced gradient on this rank."""
        return True

    def gradient(self, parameter):
        return self._gradient_of(parameter)

    def state(self, parameter):
        """Returns the optimizer's state of the parameter; None without one."""
        states = self._states()
        return states.get(self._key(parameter)) if states is not None else None

    def moment(self, parameter, state, key):
        return state.get(key)

    def group(self, parameter):
        """Returns the settings of the parameter: betas, eps."""
        inner = getattr(self.optimizer, "optimizer", None) or self.optimizer
        key = self._key(parameter)
        for group in getattr(inner, "param_groups", ()):
            if any(one is key for one in group["params"]):
                return group
        return getattr(inner, "defaults", {})

    def _key(self, parameter):
        return parameter

    def _states(self):
        for owner, name in ((self.optimizer, "param_to_cpu_states_map"), (self.optimizer, "state"),
                            (getattr(self.optimizer, "optimizer", None), "state")):
            states = getattr(owner, name, None)
            if states is not None:
                return states
        return None


class _Copying(_Plain):
    """For optimizers that work on copies: parameters without a copy belong to another rank."""

    models = ("float16_groups", "fp32_from_fp32_groups")
    copies = ("fp32_from_float16_groups", "fp32_from_fp32_groups")

    def __init__(self, optimizer, gradient_of):
        super().__init__(optimizer, gradient_of)
        self.refresh()

    def refresh(self):
        self._copies = {}
        for models, copies in zip(self.models, self.copies):
            self._copies.update(zip(_flat(getattr(self.optimizer, models, None)),
                                    _flat(getattr(self.optimizer, copies, None))))

    def has(self, parameter):
        return self._copies.get(parameter) is not None

    def _key(self, parameter):
        return self._copies.get(parameter)


class _Sharding(_Copying):
    """For optimizers whose copy is this rank's share of the parameter."""

    models = ("model_float16_groups", "model_fp32_groups")
    copies = ("shard_fp32_from_float16_groups", "shard_fp32_groups")

    def gradient(self, parameter):
        gradient = self._gradient_of(parameter)
        copy = self._copies[parameter]
        if gradient is None or gradient.numel() == copy.numel():
            return gradient
        start, end = self._range(parameter, gradient.numel(), copy.numel())
        return gradient.flatten()[start:end]

    def _range(self, parameter, whole, share):
        find = getattr(self.optimizer, "_get_model_param_range_map", None)
        if find is not None:
            place = find(parameter)["param"]
            return place.start, place.end
        # A rank's share of the buffer begins inside its first parameter and ends inside its last one.
        first = next(iter(self._copies)) is parameter
        return (whole - share, whole) if first else (0, share)


class _Flat(_Plain):
    """For DeepSpeed: the copies of a group are one flat tensor."""

    parameters = "bit16_groups"
    copies = "single_partition_of_fp32_groups"

    def __init__(self, optimizer, gradient_of):
        super().__init__(optimizer, gradient_of)
        self._groups = getattr(optimizer, self.parameters)
        self._group_of = {tensor: number for number, group in enumerate(self._groups) for tensor in group}
        self.refresh()

    def refresh(self):
        """Finds each parameter's share in the flat tensor of its group, once per step."""
        self._slices = {}
        self._index = {}
        mappings = self.optimizer.state_dict()["param_slice_mappings"]
        for number, group in enumerate(self._groups):
            owned = 0
            for tensor in group:
                place = mappings[number].get(self.optimizer.param_names.get(tensor))
                if place is not None:
                    self._slices[tensor] = place
                    self._index[tensor] = owned
                    owned += 1

    def has(self, parameter):
        return parameter in self._slices

    def gradient(self, parameter):
        number = self._group_of[parameter]
        if getattr(self.optimizer, "cpu_offload", False):
            place = self._slices[parameter]
            return getattr(self.optimizer, self.copies)[number].grad.flatten()[place.start:place.start + place.numel]
        return self.optimizer.averaged_gradients[number][self._index[parameter]]

    def moment(self, parameter, state, key):
        moment = state.get(key)
        if not isinstance(moment, torch.Tensor):
            return moment
        place = self._slices[parameter]
        return moment.flatten()[place.start:place.start + place.numel]

    def _key(self, parameter):
        number = self._group_of.get(parameter)
        return None if number is None or not self.has(parameter) else getattr(self.optimizer, self.copies)[number]


class _Bf16(_Flat):
    parameters = "bf16_groups"
    copies = "fp32_groups_flat_partition"

    def gradient(self, parameter):
        number = self._group_of[parameter]
        position = next(at for at, tensor in enumerate(self._groups[number]) if tensor is parameter)
        return self.optimizer.fp32_groups_gradient_dict[number][position]


class _Stage3(_Flat):
    """For optimizers that give every rank a share of every parameter."""

    parameters = "fp16_groups"
    copies = "fp32_partitioned_groups_flat"

    def refresh(self):
        self._slices = {}
        self._index = {}
        for tensor in self._group_of:
            _number, start, count = self.optimizer.grad_position[self.optimizer.get_param_id(tensor)]
            self._slices[tensor] = _Slice(start, count)
        for group in self._groups:
            self._index.update((tensor, at) for at, tensor in enumerate(group))


class _Slice:
    def __init__(self, start, numel):
        self.start = start
        self.numel = numel


class _Chained:
    """Several readers as one: a parameter belongs to the first that has it."""

    def __init__(self, readers):
        self._readers = readers

    def refresh(self):
        for reader in self._readers:
            reader.refresh()

    def _of(self, parameter):
        having = [reader for reader in self._readers if reader.has(parameter)]
        return next((reader for reader in having if reader.state(parameter)), having[0] if having else None)

    def has(self, parameter):
        return self._of(parameter) is not None

    def gradient(self, parameter):
        return self._of(parameter).gradient(parameter)

    def state(self, parameter):
        reader = self._of(parameter)
        return None if reader is None else reader.state(parameter)

    def moment(self, parameter, state, key):
        return self._of(parameter).moment(parameter, state, key)

    def group(self, parameter):
        return self._of(parameter).group(parameter)


_KINDS = {
    "Float16OptimizerWithFloat16Params": _Copying,
    "DistributedOptimizer": _Sharding,
    "SwapDistributedOptimizer": _Sharding,
    "BF16_Optimizer": _Bf16,
    deepspeed.ZERO: _Flat,
    deepspeed.ZERO + "_Stage3": _Stage3,
}
