# SPDX-License-Identifier: Apache-2.0
"""All hooks of a monitor while it is collecting."""

from msprobe.core.common import log
from msprobe.core.monitor.engine import guarded

from . import parameters
from .cells import Cells
from .figures import StepFigures
from .watch import Watch

_NOT_HERE = ("print_struct", "recording_l2_features", "stack_info", "ur_distribution")


class Attachment:
    structure = None

    def __init__(self, engine, training):
        self._watch = watch = Watch(engine, training.micro_batches)
        for key in _NOT_HERE:
            if getattr(watch.settings, key):
                log.warn_once("monitor: %s has no effect with MindSpore" % key)
        self.parameters = parameters.find(watch, training.models)
        self._cells = Cells(watch)
        self._unreduced = parameters.Unreduced(watch, self.parameters)
        guarded("hooking cells", self._cells.attach, training.models)
        if watch.settings.wg_distribution:
            guarded("hooking gradients", self._unreduced.attach)
        self._figures = [StepFigures(watch, optimizer, self._share_of(optimizer, number))
                         for number, optimizer in enumerate(training.optimizers)]

    def _share_of(self, optimizer, number):
        """The parameters of an optimizer; those that none has are the first one's."""
        own = {parameter.name for parameter in getattr(optimizer, "parameters", ())}
        return {name: one for name, one in self.parameters.items() if name in own or (not own and number == 0)}

    def before_step(self, number, inputs):
        """Called before the optimizer with this number steps, with these arguments."""
        self._figures[number].before_step(inputs)

    def after_step(self, number):
        self._figures[number].after_step()

    def fetch(self):
        """Statistics are computed immediately, so there is nothing to fetch."""

    def step_ends(self):
        self._cells.step_ends()
        self._unreduced.step_ends()

    def observe(self, stage, name, tensor):
        """Records a tensor that the training passes in directly."""
        self._watch.observer.observe(self._watch.engine.series("other", stage, name), tensor)

    def remove(self):
        guarded("removing hooks", self._cells.remove)
        guarded("removing hooks", self._unreduced.remove)
