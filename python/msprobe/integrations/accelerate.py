# SPDX-License-Identifier: Apache-2.0
"""msprobe.record() for training loops with Hugging Face accelerate.

    from msprobe.integrations.accelerate import record
    with record(accelerator, model, "dump"):
        for batch in loader: ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import msprobe
from msprobe.core.arguments import invalid

if TYPE_CHECKING:
    import os
    from typing import Union

    from accelerate import Accelerator

    from msprobe.pytorch.recording import Recording


def record(accelerator: Accelerator, model: Any, dump_path: Optional[Union[str, os.PathLike[str]]] = None, *,
           optimizer: Any = None, **settings: Any) -> Recording:
    """Records the training loop in a `with` block. A step ends where the optimizer really makes one, so it has all
    batches whose gradients are accumulated.

    Args:
        accelerator: the Accelerator that has prepared the model and the optimizer.
        model: the model, prepared or not; entries have the names of the model without what accelerate wraps around it.
        dump_path: the folder to record into.
        optimizer: which prepared optimizer ends a step, if there are several; by default the only one.
        settings: as for msprobe.record().

    Returns a Recording.

    Raises MsprobeException if a setting is invalid, or if it is not clear which optimizer ends a step.
    """
    if optimizer is None:
        prepared = accelerator._optimizers
        if len(prepared) != 1:
            raise invalid("record: the accelerator has prepared %d optimizers: name the one that ends a step as "
                          "optimizer=" % len(prepared))
        optimizer = prepared[0]
    return msprobe.record(accelerator.unwrap_model(model), dump_path, optimizer=optimizer, **settings)
