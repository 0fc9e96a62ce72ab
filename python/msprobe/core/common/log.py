# SPDX-License-Identifier: Apache-2.0
"""Messages to the person who trains: one line each, on stderr, never more than once where it could repeat.

MSPROBE_LOG_LEVEL, as the Python tool has it: 2 leaves out what is no warning, 3 and 4 warnings, too.
"""

import os
import sys

_said = set()


def _level():
    level = os.environ.get("MSPROBE_LOG_LEVEL", "")
    return int(level) if level in ("0", "1", "2", "3", "4") else 1


def info(text):
    if _level() < 2:
        _write("", text)


def warn(text):
    if _level() < 3:
        _write("warning: ", text)


def warn_once(text, about=None):
    """Once for each text, or for each thing that it is about."""
    if (about or text) not in _said:
        _said.add(about or text)
        warn(text)


def _write(kind, text):
    try:
        sys.stderr.write("msprobe: " + kind + text + "\n")
    except Exception:  # a closed stderr is no reason to disturb the training
        pass
