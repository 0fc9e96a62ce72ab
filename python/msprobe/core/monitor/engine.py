# SPDX-License-Identifier: Apache-2.0
"""The native monitor as used by hooks. Its errors, and those of the hooks, are never raised into the training."""

import json
import os
import sys
import weakref

from msprobe import _native
from msprobe.core.common import log

_engines = weakref.WeakSet()
_TASKS = {"grad_reduced": "post_grad", "grad_unreduced": "acc_grad"}  # as tags call them


class Engine:
    """One monitor: its series and its files. In a forked process it does nothing."""

    def __init__(self, config_path, options):
        self._native = _native.Monitor(config_path, None, options)
        self._ids = {}
        self._told = 0  # of the warnings
        # Straight to the extension: hooks call these for every tensor.
        self.collecting = self._native.collecting
        self.observe = self._native.observe
        self.observe_statistics = self._native.observe_statistics
        self.observe_values = self._native.observe_values
        self.absent = self._native.absent
        _engines.add(self)

    def setting(self, key):
        return json.loads(self._native.setting(key))

    def tell_warnings(self):
        """Reports new warnings."""
        warnings = self.setting("warnings")
        for text in warnings[self._told:]:
            log.warn("monitor: " + text)
        self._told = len(warnings)

    def series(self, quantity, stage, name, micro_step=-1, scope=""):
        """The number of a series, registered on first use."""
        key = (quantity, stage, name, micro_step, scope)
        number = self._ids.get(key)
        if number is None:
            number = self._ids[key] = self._native.series(quantity, stage, name, micro_step, scope)
        return number

    def set(self, key, value):
        self._native.set(key, json.dumps(value))

    def set_rank(self, rank):
        self._native.set_rank(rank)

    def set_step(self, step):
        self._native.set_step(step)

    def held(self, quantity, rank):
        """(tag, statistics) of each series of a quantity that has values in this step."""
        for (kind, stage, name, micro_step, scope), number in self._ids.items():
            text = self._native.value(number) if kind == quantity else None
            if text is not None:
                micro = "" if micro_step < 0 else ":%d" % micro_step
                task = scope or _TASKS.get(quantity, quantity)
                yield "%d:%s%s/rank%d/%s" % (stage, name, micro, rank, task), json.loads(text)

    def step_end(self):
        """The result of the step, whose rows are now in the files: written, finished, alerts."""
        result = self._native.step_end()
        if result["warning"]:
            log.warn("monitor: " + result["warning"])
        return result

    def alerts(self):
        return json.loads(self._native.alerts())

    def reload(self):
        """1: the configuration file asks for a restart; 2: it asks to stop; 0: no change."""
        _, changed, error = self._native.reload()
        if error:
            log.warn("monitor: " + error)
        return changed

    def is_open(self):
        return self in _engines

    def close(self):
        if self.is_open():
            _engines.discard(self)
            self._native.close()

    def forked(self):
        _engines.discard(self)
        self._native.disown()
        self.collecting = _never


def _never():
    return False


def guard(where):
    """Reports the current exception, once for each place in the code. The training continues."""
    kind, error = sys.exc_info()[:2]
    log.warn_once("monitor: %s failed: %s: %s" % (where, getattr(kind, "__name__", kind), error), "monitor " + where)


def guarded(where, function, *args):
    """The result of the function; None if it failed."""
    try:
        return function(*args)
    except Exception:
        guard(where)
        return None


def _after_fork():
    for engine in list(_engines):
        engine.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
