# SPDX-License-Identifier: Apache-2.0
"""All hooks of a monitor while it is collecting."""

from msprobe.core.monitor.engine import guarded

from . import fsdp, parameters
from .features import Features
from .figures import StepFigures
from .modules import Modules
from .stacks import Stacks
from .structure import Structure
from .watch import Watch


class Attachment:
    def __init__(self, engine, training, main_gradients):
        models, optimizers = training.models, training.optimizers
        self._watch = watch = Watch(engine, training.micro_batches, main_gradients)
        self.parameters = parameters.find(watch, models, training.tp_group, training.dp_group)
        self._unreduced = parameters.Unreduced(self.parameters, watch.settings.monitor_mbs_grad, main_gradients,
                                               lambda: engine.collecting(), self._observe_unreduced)
        self._parts = [Modules(watch), Features(watch), Stacks(watch), self._unreduced]
        self.structure = None
        if watch.settings.print_struct:
            self.structure = Structure()
            self.structure.attach(models)
        for part in self._parts[:3]:
            guarded("hooking modules", part.attach, models)
        if watch.settings.wg_distribution:
            guarded("hooking gradients", self._unreduced.attach, models, optimizers)
        skips_empty = any(fsdp.is_flat(module) for model in models for module in model.modules())
        self._figures = [StepFigures(watch, optimizer, own, skips_empty)
                         for optimizer, own in zip(optimizers, _shared_out(self.parameters, optimizers))]

    def before_step(self, number):
        """Called before the optimizer with this number steps."""
        self._figures[number].before_step()

    def after_step(self, number):
        self._figures[number].after_step()

    def fetch(self):
        self._watch.observer.fetch()

    def step_ends(self):
        for part in self._parts:
            part.step_ends()

    def observe(self, stage, name, tensor):
        """Records a tensor that the training passes in directly."""
        self._watch.observer.observe(self._watch.engine.series("other", stage, name), tensor)

    def _observe_unreduced(self, parameter, gradient, number, task):
        micro_step = number if self._watch.settings.monitor_mbs_grad else -1
        series = self._watch.engine.series("grad_unreduced", parameter.stage, parameter.name, micro_step, task)
        self._watch.observer.observe(series, gradient)

    def remove(self):
        for part in self._parts + [self.structure]:
            if part is not None:
                guarded("removing hooks", part.remove)


def _shared_out(found, optimizers):
    """Returns the parameters of each optimizer; parameters in no optimizer's groups belong to the first one."""
    if len(optimizers) == 1:
        return [found]
    shares = [{} for _ in optimizers]
    owners = {}
    for number, optimizer in enumerate(optimizers):
        for group in getattr(optimizer, "param_groups", ()):
            for tensor in group["params"]:
                owners.setdefault(tensor, number)
    for tensor, parameter in found.items():
        shares[owners.get(tensor, 0)][tensor] = parameter
    return shares
