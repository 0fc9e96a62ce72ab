# SPDX-License-Identifier: Apache-2.0
"""What all parts of a monitor at work share: the engine, the configuration as it is now, names, counts."""

from msprobe.core.monitor.names import Names, Targets

from .tensors import Observer

_KEYS = ("all_xy", "backward_only", "cc_distribution", "eps", "forward_only", "l2_targets", "mg_direction",
         "monitor_mbs_grad", "mv_distribution", "param_distribution", "print_struct", "recording_l2_features",
         "sa_order", "squash_name", "stack_info", "targets", "ur_distribution", "wg_distribution", "xy_distribution")


class Settings:
    """The keys of the configuration that the hooks need, as the engine understood them."""

    def __init__(self, engine):
        for key in _KEYS:
            setattr(self, key, engine.setting(key))


class Calls:
    """Counts the calls of something in turns of the micro batches."""

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
    def __init__(self, engine, micro_batches, main_gradients):
        """`micro_batches`: of each stage."""
        self.engine = engine
        self.settings = Settings(engine)
        self.observer = Observer(engine, self.settings.eps)
        self.micro_batches = micro_batches
        self.main_gradients = main_gradients
        self.targets = Targets(self.settings.targets, self.settings.squash_name)
        self.module_names = Names(self.settings.squash_name)
        self.parameter_names = Names(self.settings.squash_name)

    def is_on(self, module):
        """Whether a call of the module counts."""
        return self.engine.collecting() and module.training

    def gradient_of(self, parameter):
        return gradient_of(parameter, self.main_gradients)


def gradient_of(parameter, main_gradients):
    """Where a parameter has a main gradient, and those are wanted, that; else its own. None if it has none."""
    gradient = getattr(parameter, "main_grad", None) if main_gradients else None
    return parameter.grad if gradient is None else gradient
