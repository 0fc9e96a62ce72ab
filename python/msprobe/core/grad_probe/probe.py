# SPDX-License-Identifier: Apache-2.0
"""Task grad_probe: the gradients at the moment an optimizer steps. Every optimizer that is watched counts."""

from __future__ import annotations

from typing import Any, Callable, Collection, Iterable, Optional, Tuple

from msprobe import _native
from msprobe.core import session
from msprobe.core.common import log


class Probe:
    def __init__(self) -> None:
        self._steps: Optional[Collection[int]] = None  # None: all
        self._records = False

    def record_steps(self, steps: Optional[Collection[int]]) -> None:
        self._steps = steps
        self._records = True
        session.at_end(self.end)

    def end(self) -> None:
        """The session ends: optimizers that go on count for nothing."""
        self._records = False

    def before_step(self, gradients: Callable[[], Iterable[Tuple[str, Any]]]) -> None:
        """An optimizer steps: gradients() -> (name, gradient in host memory), ... Nothing of it reaches the training."""
        try:
            if session.in_child() or not self._records:
                return
            with session.lock:
                session.discover_rank()
                if self._steps is None or _native.info()["step"] in self._steps:
                    for name, gradient in gradients():
                        session.attempted(_native.probe_gradient, name, gradient)
                session.attempted(_native.step)
        except Exception as error:
            log.warn_once("task grad_probe cannot record: %s" % (error,), "grad_probe")
