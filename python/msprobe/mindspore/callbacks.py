# SPDX-License-Identifier: Apache-2.0
"""Recording the steps of mindspore.train.Model."""

from __future__ import annotations

from typing import Any

from mindspore.train import Callback


class MsprobeStep(Callback):
    """Each training step becomes a step of the debugger."""

    def __init__(self, debugger: Any) -> None:
        super().__init__()
        self.debugger = debugger

    def on_train_step_begin(self, run_context: Any) -> None:
        self.debugger.start(_network(run_context))

    def on_train_step_end(self, run_context: Any) -> None:
        self.debugger.stop()
        self.debugger.step()


def _network(run_context: Any) -> Any:
    """The cell that is trained, as levels L0 and mix need it."""
    return getattr(run_context.original_args(), "network", None)
