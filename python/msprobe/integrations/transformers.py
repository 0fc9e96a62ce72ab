# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Hugging Face transformers.

    from msprobe.integrations.transformers import RecordCallback
    trainer.add_callback(RecordCallback("dump"))
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from msprobe.pytorch.recording import StepCallbacks


class RecordCallback(StepCallbacks, TrainerCallback):
    """Records steps of a training. The arguments are those of msprobe.pytorch.recording.StepCallbacks."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._begin(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._start(kwargs.get("model"))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end_step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end()
