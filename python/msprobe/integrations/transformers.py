# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Hugging Face transformers.

    from msprobe.integrations.transformers import RecordCallback
    trainer.add_callback(RecordCallback("dump"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from transformers import TrainerCallback

from msprobe.pytorch.recording import StepCallbacks

if TYPE_CHECKING:
    import os


class RecordCallback(TrainerCallback):
    """Records steps of a training; a step is one of the optimizer, with all batches whose gradients it accumulates.

    Args:
        dump_path: the folder to record into.
        task: "statistics", "tensor", "structure" or "overflow_check".
        level: "mix", "L0" or "L1".
        steps: how many steps to record, from the first one of this training.
        step: instead of that, the numbers of the steps, such as [0, "100-102"]; they count as Trainer's global_step.
        list: parts of names: only entries with such a name are recorded, and all that is inside such a module.
        settings: other keys of the configuration, as for msprobe.record().

    Raises MsprobeException if a setting is invalid. It raises nothing into the training: what fails is reported once.
    """

    def __init__(self, dump_path: Union[str, os.PathLike[str]], *, task: str = "statistics", level: str = "mix",
                 steps: int = 2, step: Optional[Sequence[Union[int, str]]] = None,
                 list: Optional[Sequence[str]] = None, **settings: Any) -> None:
        self._steps = StepCallbacks(dump_path, task, level, steps, step, list, settings)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps.begin(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps.start(kwargs.get("model"))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps.end_step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._steps.end()
