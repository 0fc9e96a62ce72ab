# SPDX-License-Identifier: Apache-2.0
"""Recording the steps of mindspore.train.Model."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore.train import Callback

from msprobe.core import session
from msprobe.core.common import log

from .debugger import PrecisionDebugger


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


class MsprobeInitStep(Callback):
    """MindSpore's dumps of kernels count their steps from where the training begins, as after a checkpoint was loaded."""

    def on_train_begin(self, run_context: Any) -> None:
        set_first_step = getattr(mindspore._c_expression, "_set_init_iter", None)
        if set_first_step is None:
            log.warn_once("MsprobeInitStep has no effect with this version of MindSpore")
            return
        first = run_context.original_args().cur_step_num
        set_first_step(first)
        if PrecisionDebugger._instance is not None and session.dumps_kernels():
            PrecisionDebugger.set_init_step(first)  # level L2 counts along


def _network(run_context: Any) -> Any:
    """The cell that is trained, as levels L0 and mix need it."""
    return getattr(run_context.original_args(), "network", None)
