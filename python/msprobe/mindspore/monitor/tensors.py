# SPDX-License-Identifier: Apache-2.0
"""Tensors on their way to the engine, as arrays of NumPy: MindSpore copies to the host what lies on a device."""

from .. import describe, framework


class Observer:
    def __init__(self, engine):
        self._engine = engine

    def observe(self, series, value):
        """A tensor, or what stands where one could be: that has no figures."""
        elements = describe.elements_of(value) if isinstance(value, framework.Tensor) else None
        if elements is None:
            self._engine.absent(series)
        else:
            self._engine.observe(series, elements, str(value.dtype))
