# SPDX-License-Identifier: Apache-2.0
"""The watched parameters, and their gradients as computed by a backward."""

from msprobe.core.monitor.engine import guarded
from msprobe.core.monitor.watch import Calls


class Parameter:
    def __init__(self, tensor, stage, name, micro_batches):
        self.tensor = tensor
        self.stage = stage
        self.name = name
        self.micro_batches = micro_batches
        self.arrivals = Calls(micro_batches)


def find(watch, models):
    """Parameters by MindSpore's names, for those selected; one that several cells share has its first name."""
    found = {}
    for stage, model in enumerate(models):
        for name, tensor in model.parameters_and_names():
            if tensor.requires_grad and tensor.name not in found and watch.targets.has_parameter(stage, name):
                found[tensor.name] = Parameter(tensor, stage, watch.parameter_names.of(stage, name),
                                               watch.micro_batches[stage])
    return found


class Unreduced:
    """Hooks on parameter gradients: MindSpore reports the gradient of each backward, not their sum."""

    def __init__(self, watch, parameters):
        self._watch = watch
        self._parameters = parameters
        self._handles = []

    def attach(self):
        for parameter in self._parameters.values():
            handle = guarded("hooking the gradient of " + parameter.name, self._hook, parameter)
            self._handles += [] if handle is None else [handle]

    def _hook(self, parameter):
        return parameter.tensor.register_hook(
            lambda gradient: guarded("the gradient of " + parameter.name, self._arrived, parameter, gradient))

    def _arrived(self, parameter, gradient):
        if not self._watch.engine.collecting():
            return
        each = self._watch.settings.monitor_mbs_grad
        number = parameter.arrivals.next()
        if each or number == parameter.micro_batches - 1:
            series = self._watch.engine.series("grad_unreduced", parameter.stage, parameter.name,
                                               number if each else -1, "acc_grad")
            self._watch.observer.observe(series, gradient)

    def step_ends(self):
        for parameter in self._parameters.values():
            parameter.arrivals.reset()

    def remove(self):
        for handle in self._handles:
            handle.remove()
        self._handles = []
