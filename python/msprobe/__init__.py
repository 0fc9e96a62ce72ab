# SPDX-License-Identifier: Apache-2.0
"""Records what a training run computes, and finds where two runs diverge.

    with msprobe.record(model, "dump"): ...             records a training step
    from msprobe.pytorch import PrecisionDebugger       the same for scripts written for the Python tool
    msprobe.compare("dump_a", "dump_b")                 compares two dumps

Importing this package imports no framework: names are looked up when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

from . import old_paths, side_by_side

if TYPE_CHECKING:
    from .comparison import Comparison as Comparison
    from .comparison import Finding as Finding
    from .comparison import compare as compare
    from .core.common.exceptions import ComparisonError as ComparisonError
    from .core.common.exceptions import MsprobeException as MsprobeException
    from .core.common.exceptions import NothingCompared as NothingCompared
    from .pytorch.recording import record as record

    __version__: str

side_by_side.warn()
old_paths.install()

_NAMES = {
    "Comparison": ".comparison", "Finding": ".comparison", "compare": ".comparison",
    "ComparisonError": ".core.common.exceptions", "MsprobeException": ".core.common.exceptions",
    "NothingCompared": ".core.common.exceptions",
    "record": ".pytorch.recording",
}

__all__ = ["Comparison", "ComparisonError", "Finding", "MsprobeException", "NothingCompared", "__version__", "compare", "record"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = importlib.import_module("._native", __name__).version
    elif name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name], __name__), name)
    else:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__))
