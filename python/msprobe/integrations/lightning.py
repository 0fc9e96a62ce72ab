# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Lightning.

    from msprobe.integrations.lightning import RecordCallback
    trainer = Trainer(callbacks=[RecordCallback("dump")])
"""

from __future__ import annotations

import sys
from typing import Any

from msprobe.pytorch.recording import StepCallbacks

# Lightning has two names, whose classes are different ones: that of the program counts.
if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning.callbacks import Callback
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback


class RecordCallback(StepCallbacks, Callback):
    """Records steps of a training, not its validation. The arguments are those of
    msprobe.pytorch.recording.StepCallbacks."""

    _global_step = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._global_step = trainer.global_step
        self._begin(trainer.global_step)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._start(pl_module)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step == self._global_step:  # gradients are accumulated
            self._stop()
        else:
            self._global_step = trainer.global_step
            self._end_step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end()
