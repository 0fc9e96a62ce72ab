# SPDX-License-Identifier: Apache-2.0
"""State shared by the parts of an active monitor: the engine, the current configuration, names, counters."""

from msprobe.core.common import log

from .engine import guarded
from .names import Names, Targets, numbered

_KEYS = ("all_xy", "backward_only", "cc_distribution", "eps", "forward_only", "l2_targets", "mg_direction",
         "monitor_mbs_grad", "mv_distribution", "param_distribution", "print_struct", "recording_l2_features",
         "sa_order", "squash_name", "stack_info", "targets", "ur_distribution", "wg_distribution", "xy_distribution")


class Settings:
    """The configuration keys that the hooks need, as parsed by the engine."""

    def __init__(self, engine):
        for key in _KEYS:
            setattr(self, key, engine.setting(key))


class Calls:
    """Counts calls modulo the number of micro-batches."""

    __slots__ = ("_turns", "_count")

    def __init__(self, turns):
        self._turns = turns
        self._count = 0

    def next(self):
        number = self._count
        self._count = (number + 1) % self._turns
        return number

    def reset(self):
        self._count = 0


class Watch:
    def __init__(self, engine, micro_batches):
        """`micro_batches`: per stage."""
        self.engine = engine
        self.settings = Settings(engine)
        self.micro_batches = micro_batches
        self.targets = Targets(self.settings.targets, self.settings.squash_name)
        self.module_names = Names(self.settings.squash_name)
        self.parameter_names = Names(self.settings.squash_name)

    def is_on(self, module):
        """Whether a call of the module counts."""
        return self.engine.collecting() and module.training


class CallFigures:
    """Inputs and outputs of the calls of one module: `actv` in the forward, `actv_grad` in the backward."""

    def __init__(self, watch, stage, name):
        self._watch = watch
        self._stage = stage
        self._name = name
        self._forwards = Calls(watch.micro_batches[stage])
        self._backwards = Calls(watch.micro_batches[stage])

    def forward(self, **values):
        """Values, keyed by `input` or `output`."""
        self._observe("actv", self._forwards.next(), values)

    def backward(self, **values):
        self._observe("actv_grad", self._backwards.next(), values)

    def step_ends(self):
        self._forwards.reset()
        self._backwards.reset()

    def _observe(self, quantity, micro_step, values):
        engine, observer = self._watch.engine, self._watch.observer
        for word, those in values.items():
            for index, value in enumerate(those):
                name = numbered(self._name + "." + word, index, len(those))
                observer.observe(engine.series(quantity, self._stage, name, micro_step), value)


class WatchedCalls:
    """The watched modules or cells and their hooks. WORD, parts_of() and hooked() are supplied by the framework."""

    WORD = "module"

    def __init__(self, watch):
        self._watch = watch
        self._watched = []

    def parts_of(self, models):
        """Stage, path and module of all modules."""
        raise NotImplementedError

    def hooked(self, stage, path, module, forward, backward):
        """An object that watches the calls, with step_ends() and remove()."""
        raise NotImplementedError

    def attach(self, models):
        settings = self._watch.settings
        forward, backward = not settings.backward_only, not settings.forward_only
        if not settings.xy_distribution:
            return
        if not (forward or backward):
            log.warn("monitor: forward_only and backward_only cannot be combined: no statistics of %ss remain" % self.WORD)
            return
        for stage, path, module in self.parts_of(models):
            if settings.all_xy or self._watch.targets.has_module(stage, path):
                watched = guarded("hooking a " + self.WORD, self.hooked, stage, path, module, forward, backward)
                self._watched += [] if watched is None else [watched]

    def step_ends(self):
        for watched in self._watched:
            watched.step_ends()

    def remove(self):
        for watched in self._watched:
            watched.remove()
        self._watched = []
