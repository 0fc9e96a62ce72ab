# SPDX-License-Identifier: Apache-2.0
"""State shared by the parts of an active monitor: names, counters, and the location of gradients."""

from msprobe.core.monitor import watch

from .tensors import Observer


class Watch(watch.Watch):
    def __init__(self, engine, micro_batches, main_gradients):
        super().__init__(engine, micro_batches)
        self.observer = Observer(engine, self.settings.eps)
        self.main_gradients = main_gradients

    def gradient_of(self, parameter):
        return gradient_of(parameter, self.main_gradients)


def gradient_of(parameter, main_gradients):
    """Returns the main gradient if the parameter has one and it is requested, otherwise its own; None without a
    gradient."""
    gradient = getattr(parameter, "main_grad", None) if main_gradients else None
    return parameter.grad if gradient is None else gradient
