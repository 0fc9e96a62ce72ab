# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Lightning.

    from msprobe.integrations.lightning import RecordCallback
    trainer = Trainer(callbacks=[RecordCallback("dump")])
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from msprobe.pytorch.recording import StepCallbacks

if TYPE_CHECKING:
    import os

# Lightning has two names, whose classes are different ones: that of the program counts.
if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning.callbacks import Callback
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback  # type: ignore[assignment]


class RecordCallback(Callback):
    """Records steps of a training; a step is one of the optimizer, with all batches whose gradients it accumulates.
    Validation is not recorded.

    Args:
        dump_path: the folder to record into.
        task: "statistics", "tensor", "structure" or "overflow_check".
        level: "mix", "L0" or "L1".
        steps: how many steps to record, from the first one of this training.
        step: instead of that, the numbers of the steps, such as [0, "100-102"]; the first of a training that goes on
            from a checkpoint is Trainer's global_step.
        list: parts of names: only entries with such a name are recorded, and all that is inside such a module.
        settings: other keys of the configuration, as for msprobe.record().

    Raises MsprobeException if a setting is invalid. It raises nothing into the training: what fails is reported once.
    """

    def __init__(self, dump_path: Union[str, os.PathLike[str]], *, task: str = "statistics", level: str = "mix",
                 steps: int = 2, step: Optional[Sequence[Union[int, str]]] = None,
                 list: Optional[Sequence[str]] = None, **settings: Any) -> None:
        self._steps = StepCallbacks(dump_path, task, level, steps, step, list, settings)
        self._global_step = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._global_step = trainer.global_step
        self._steps.begin(trainer.global_step)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._steps.start(pl_module)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step == self._global_step:  # gradients are accumulated
            self._steps.stop()
        else:
            self._global_step = trainer.global_step
            self._steps.end_step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._steps.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._steps.end()
