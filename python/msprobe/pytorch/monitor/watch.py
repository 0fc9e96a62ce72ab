# SPDX-License-Identifier: Apache-2.0
"""What all parts of a monitor at work share: besides names and counts, where gradients are."""

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
    """Where a parameter has a main gradient, and those are wanted, that; else its own. None if it has none."""
    gradient = getattr(parameter, "main_grad", None) if main_gradients else None
    return parameter.grad if gradient is None else gradient
