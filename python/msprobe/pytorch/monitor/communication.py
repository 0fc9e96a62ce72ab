# SPDX-License-Identifier: Apache-2.0
"""Communication (cc_distribution): tensors before and after calls of torch.distributed, and the source lines of these
calls."""

import json
import re

import torch

from msprobe.core.common import log
from msprobe.core.monitor.engine import guarded
from msprobe.core.monitor.replacing import Replaced

from .stacks import frames_above_hooks
from .tensors import Observer, plain_of

_NAMES = ("send", "recv", "isend", "irecv", "batch_isend_irecv", "broadcast", "all_reduce", "reduce", "scatter",
          "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor", "all_gather", "gather",
          "_all_gather_base", "all_gather_into_tensor", "gather_into_tensor")
# From PyTorch 2.13 on, these functions and FSDP call newer names; such a call is counted only once.
_NEWER = {"all_gather_into_tensor": "all_gather_single", "reduce_scatter_tensor": "reduce_scatter_single",
          "gather_into_tensor": "gather_single"}
_CALL_NEWER = {"_all_gather_base": "all_gather_single", "_reduce_scatter_base": "reduce_scatter_single"}
_EPS = 1e-8


class Communication:
    def __init__(self, engine, settings, series):
        """series(operation, place) is the number of the series of a tensor."""
        self._engine = engine
        self._series = series
        self._observer = Observer(engine, _EPS)
        self._before = bool(settings.get("cc_pre_hook"))
        self._only_logs = bool(settings.get("cc_log_only"))
        self._lines = [re.compile(line) for line in settings.get("cc_codeline") or ()]
        self._stacks = {}   # operation -> stacks, with the innermost frame first
        self._pending = {}  # id(work) -> (work, transfer)
        self._replaced = []
        if torch.distributed.is_available():
            self._replace()

    def remove(self):
        for replaced in self._replaced:
            replaced.remove()
        self._replaced = []
        self._pending.clear()

    def fetch(self):
        self._observer.fetch()

    def step_ends(self):
        self._pending.clear()  # transfers that the program has not waited for

    def log_and_leave(self, step, rank):
        """With cc_log_only: the second step reports the calls of the first, and ends the training."""
        if not self._only_logs or step < 1:
            return
        if rank == 0:
            log.info("monitor: the calls of communication, and their call stacks:")
            log.info("monitor: " + json.dumps(self._stacks))
        self.remove()
        raise Exception("monitor: cc_log_only ends the training after the first step")

    # ------------------------------------------------------------------

    def _replace(self):
        distributed = torch.distributed
        for owner in (distributed, distributed.distributed_c10d):
            for name in _NAMES:
                if hasattr(owner, _CALL_NEWER.get(name, "")):
                    continue
                newer = _NEWER.get(name, name)
                found = newer if hasattr(owner, newer) else name
                if callable(getattr(owner, found, None)):
                    self._replaced.append(Replaced(owner, found, self._guarded(self._begins, name),
                                                   self._guarded(self._ended, name)))
        work = getattr(distributed, "Work", None) or getattr(torch._C._distributed_c10d, "Work", None)
        if work is not None:
            self._replaced.append(Replaced(work, "wait", after=self._guarded(self._waited)))

    @staticmethod
    def _guarded(function, *first):
        def told(*args, **kwargs):
            guarded("watching a communication", function, *first, args, kwargs)
        return told

    def _begins(self, name, args, kwargs):
        if self._only_logs:
            self._keep_stack(name)
        elif self._before and self._counts():
            self._observe(name, "pre", args, kwargs)

    def _ended(self, name, result_and_args, kwargs):
        if self._only_logs or not self._counts():
            return
        result, args = result_and_args[0], result_and_args[1:]
        works = [one for one in (result if isinstance(result, (list, tuple)) else [result]) if hasattr(one, "wait")]
        if not works:
            self._observe(name, "post", args, kwargs)
            return
        transfer = _Transfer(works, lambda: self._observe(name, "post", args, kwargs))
        for work in works:
            self._pending[id(work)] = (work, transfer)

    def _waited(self, result_and_work, kwargs):
        _, transfer = self._pending.pop(id(result_and_work[1]), (None, None))
        if transfer is not None:
            transfer.waited()

    def _counts(self):
        """Whether the call is in the window, and comes from a requested line."""
        if not self._engine.collecting():
            return False
        if not self._lines:
            return True
        text = "".join("%s[%d];" % (frame.f_code.co_filename, frame.f_lineno) for frame in frames_above_hooks())
        return any(line.search(text) for line in self._lines)

    def _keep_stack(self, name):
        stack = ["%s[%d]   %s" % (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
                 for frame in frames_above_hooks()]
        stacks = self._stacks.setdefault(name, [])
        if stack not in stacks:
            stacks.append(stack)

    def _observe(self, name, place, args, kwargs):
        tensors = [one for one in map(_joined, list(args) + list(kwargs.values())) if one is not None]
        for index, tensor in enumerate(tensors):
            self._observer.observe(self._series(name, "%s_%d" % (place, index)), tensor)


class _Transfer:
    """A call that is complete when all of its handles were waited for."""

    def __init__(self, works, done):
        self._left = len(works)
        self._done = done

    def waited(self):
        self._left -= 1
        if self._left == 0:
            self._done()


def _joined(value):
    """Returns a tensor, or the elements of a list of tensors or of transfers joined into one; None for anything else."""
    if isinstance(value, torch.Tensor):
        return value
    if not isinstance(value, (list, tuple)):
        return None
    tensors = [one if isinstance(one, torch.Tensor) else getattr(one, "tensor", None) for one in value]
    flat = [plain_of(one).detach().reshape(-1) for one in tensors if isinstance(one, torch.Tensor)]
    return torch.cat(flat) if flat else None
