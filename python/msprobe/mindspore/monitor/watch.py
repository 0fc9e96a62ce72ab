# SPDX-License-Identifier: Apache-2.0
"""State shared by the parts of an active monitor."""

from msprobe.core.monitor import watch

from .tensors import Observer


class Watch(watch.Watch):
    def __init__(self, engine, micro_batches):
        super().__init__(engine, micro_batches)
        self.observer = Observer(engine)
