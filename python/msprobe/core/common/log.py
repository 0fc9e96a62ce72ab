# SPDX-License-Identifier: Apache-2.0
"""Messages to the person who trains: one line each, on stderr, never more than once where it could repeat."""

import sys

_said = set()


def info(text):
    _write("", text)


def warn(text):
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
