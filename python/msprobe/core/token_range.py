# SPDX-License-Identifier: Apache-2.0
"""Recording of a range of the calls of a model, as a generation makes one for each token."""

from msprobe import _native

from . import session


class TokenRange:
    """Counts the calls of a model, so that recording runs only from one call to another."""

    def __init__(self, token_range):
        self._begin, self._end = token_range
        self._count = 0

    def __call__(self):
        try:
            if self._count == self._begin:
                _native.set_recording(1)
            elif self._count == self._end + 1:
                _native.set_recording(0)
            self._count += 1
            session.update_switches()
        except Exception:
            session.guard("counting tokens")
