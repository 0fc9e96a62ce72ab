# SPDX-License-Identifier: Apache-2.0
"""msprobe.pytorch.check(): two training functions of one process."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Union

from msprobe import checking
from msprobe.core import overriding
from msprobe.core.arguments import invalid

from .debugger import PrecisionDebugger
from .recording import Recording

if TYPE_CHECKING:
    import os


def check(train_a: Callable[[], Any], train_b: Callable[[], Any], steps: int = 2, *,
          output_path: Union[str, os.PathLike[str], None] = None,
          noise_floor: Union[str, os.PathLike[str], None] = None) -> checking.Check:
    """Finds where two trainings first diverge: records the first steps of both with statistics and compares them. If
    the answer is only likely, it runs both once more and records the suspects with tensors, which show what is wrong
    and on which side.

    Args:
        train_a: a function without arguments that runs the training under test. It records itself, by
            `with msprobe.record(model):`, a callback or a PrecisionDebugger, whose dump_path, task and steps are
            replaced. It must do the same each time it is called: build its model and seed its random numbers.
        train_b: the reference training, likewise.
        steps: how many steps to record, from the first one.
        output_path: an empty folder for the dumps; by default a temporary one, which goes with the result.
        noise_floor: a dump of the reference on other kernels; its differences count as rounding.

    Returns a Check: true if both agree; `.culprit` is where they diverge, and print() tells the answer.

    Raises MsprobeException if a training records nothing or if the dumps cannot be compared, and what a training
    raises.
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise invalid("check: steps must be a whole number, 1 or more")
    trainings = {"a": train_a, "b": train_b}
    if not all(callable(one) for one in trainings.values()):
        raise invalid("check: train_a and train_b must be functions")
    _end_recording()
    temporary: Optional[tempfile.TemporaryDirectory[str]] = None
    if output_path is None:
        temporary = tempfile.TemporaryDirectory(prefix="msprobe-")
        folder = temporary.name
    else:
        folder = checking.empty_folder(output_path)

    def record(side: str, settings: Dict[str, Any]) -> None:
        with overriding.replaced(settings):
            try:
                trainings[side]()
            finally:
                _end_recording()
    found = checking.check(record, {"a": "train_a", "b": "train_b"}, folder, steps, noise_floor)
    found._temporary = temporary  # removed with the result
    return found


def _end_recording() -> None:
    if Recording._current is not None:
        Recording._current.close()
    PrecisionDebugger.close()
