# SPDX-License-Identifier: Apache-2.0
"""Task grad_probe: the gradients at the moment an optimizer steps. Every optimizer of the process counts."""

import functools
import importlib

import torch

from msprobe.core.grad_probe.probe import Probe

from . import framework, optimizers


class _Probe(Probe):
    def __init__(self):
        super().__init__()
        self._parameters = []  # (name, parameter)

    def watch(self, model, steps):
        self.record_steps(steps)
        self._parameters = list(model.named_parameters())
        _install()

    def end(self):
        super().end()
        self._parameters = []

    def step(self):
        if self._parameters:
            self.before_step(self._gradients)

    def _gradients(self):
        for name, parameter in self._parameters:
            gradient = getattr(parameter, "main_grad", None)
            if gradient is None:
                gradient = parameter.grad
            if gradient is not None:
                yield name, _on_host(gradient)


def _on_host(gradient):
    """The part of this process, in host memory."""
    to_local = getattr(gradient, "to_local", None)  # of a distributed tensor
    plain = framework.detach(gradient if to_local is None else to_local())
    return (plain if plain.layout == torch.strided else plain.to_dense()).cpu()


_probe = _Probe()
watch = _probe.watch


@functools.lru_cache(maxsize=None)  # once
def _install():
    optimizer = importlib.import_module("torch.optim.optimizer")
    before = getattr(optimizer, "register_optimizer_step_pre_hook", None)
    if before is not None:
        before(lambda *_: _probe.step())
        return
    for kind in _kinds_of(optimizer.Optimizer):  # before PyTorch 2.0
        if "step" in vars(kind):
            kind.step = _followed(kind.step)
    optimizers.wrap_held_steps(lambda _: _probe.step())


def _kinds_of(kind):
    for one in kind.__subclasses__():
        yield one
        yield from _kinds_of(one)


def _followed(step):
    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        if getattr(self, "_msprobe_in_step", False):  # of the class that it is derived from
            return step(self, *args, **kwargs)
        self._msprobe_in_step = True
        try:
            _probe.step()
            return step(self, *args, **kwargs)
        finally:
            self._msprobe_in_step = False
    return wrapper
