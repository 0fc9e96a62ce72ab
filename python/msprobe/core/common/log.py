# SPDX-License-Identifier: Apache-2.0
"""Messages to the user: one line each, on stderr; repeating messages are printed once.

MSPROBE_LOG_LEVEL works as in the Python tool: 2 suppresses messages below warnings, 3 and 4 also warnings.
"""

from __future__ import annotations

import os
import sys
from typing import Optional, Set

_said: Set[str] = set()


def _level() -> int:
    level = os.environ.get("MSPROBE_LOG_LEVEL", "")
    return int(level) if level in ("0", "1", "2", "3", "4") else 1


def info(text: str) -> None:
    if _level() < 2:
        _write("", text)


def warn(text: str) -> None:
    if _level() < 3:
        _write("warning: ", text)


def warn_once(text: str, about: Optional[str] = None) -> None:
    """Warns once for each text, or for each subject."""
    if (about or text) not in _said:
        _said.add(about or text)
        warn(text)


def _write(kind: str, text: str) -> None:
    try:
        sys.stderr.write("msprobe: " + kind + text + "\n")
    except Exception:  # a closed stderr is no reason to disturb the training
        pass
