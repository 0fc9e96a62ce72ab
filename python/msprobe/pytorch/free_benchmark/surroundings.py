# SPDX-License-Identifier: Apache-2.0
"""State that a second call must find and leave as the first one did: random numbers, autocast, saved tensors."""

import contextlib

import torch

from .. import framework


# ---------------------------------------------------------------------- random numbers


class _OfModule:
    """The generator of a device whose module has get_rng_state() and set_rng_state() alone."""

    def __init__(self, module, device):
        self._module = module
        self._device = device

    def get_state(self):
        return self._module.get_rng_state(self._device)

    def set_state(self, state):
        self._module.set_rng_state(state, self._device)


def _generator_of(device):
    module = getattr(torch, device.type, None)
    if device.type == "cpu" or module is None:
        return None
    ready = getattr(module, "default_generators", None)
    if ready:
        return ready[device.index if device.index is not None else module.current_device()]
    return _OfModule(module, device) if hasattr(module, "get_rng_state") else None


class Generators:
    """The generators that a call may draw from: the host's, those of its devices, and those among its arguments."""

    def __init__(self, devices, given=()):
        self._all = [torch.default_generator]
        for device in devices:
            generator = _generator_of(device)
            if generator is not None:
                self._all.append(generator)
        self._all += given

    def states(self):
        return [generator.get_state() for generator in self._all]

    def restore(self, states):
        for generator, state in zip(self._all, states):
            if not torch.equal(generator.get_state(), state):
                generator.set_state(state)


def same_states(first, second):
    return all(torch.equal(one, other) for one, other in zip(first, second))


# ---------------------------------------------------------------------- autocast


def _autocast_of(device_type):
    """(whether it is on, its dtype)"""
    if framework.VERSION >= (2, 4):
        return torch.is_autocast_enabled(device_type), torch.get_autocast_dtype(device_type)
    if device_type == "cpu":
        return torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()
    if device_type == "cuda":
        return torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()
    module = getattr(torch, device_type, None)
    if hasattr(module, "is_autocast_enabled"):
        return module.is_autocast_enabled(), module.get_autocast_dtype()
    return False, None


def autocasts(devices):
    """[(device type, dtype)] where autocast is on."""
    found = []
    for kind in sorted({device.type for device in devices} | {"cpu"}):
        on, dtype = _autocast_of(kind)
        if on:
            found.append((kind, dtype))
    return found


@contextlib.contextmanager
def casting(wanted, on):
    """Restores autocast as it was (on), or turns it off. Casts of copies are kept out of its cache."""
    with contextlib.ExitStack() as stack:
        for kind, dtype in wanted:
            stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=on, cache_enabled=False))
        yield


# ---------------------------------------------------------------------- tensors saved for a backward


def _forget(tensor):
    return None


def without_saved_tensors():
    """Context in which nothing is saved for a backward that never runs, and saved-tensor hooks of others are not
    called."""
    return torch.autograd.graph.saved_tensors_hooks(_forget, _forget)


def _kept(tensor):
    return tensor.detach()


def _as_it_is(tensor):
    return tensor


def own_saved_tensors():
    """Context in which tensors are saved unchanged, regardless of saved-tensor hooks of others."""
    return torch.autograd.graph.saved_tensors_hooks(_kept, _as_it_is)


# ---------------------------------------------------------------------- when there is no second call


def is_watched():
    """Whether a mode intercepts each operation: it would also count or record the operations of a second call."""
    depth = getattr(torch._C, "_len_torch_dispatch_stack", None)
    if depth is not None:
        return depth() > 0
    mode = getattr(torch._C, "_get_torch_dispatch_mode", None)
    return mode is not None and mode() is not None


def is_captured(devices):
    """While a graph is captured no values can be read."""
    return any(device.type == "cuda" for device in devices) and torch.cuda.is_current_stream_capturing()
