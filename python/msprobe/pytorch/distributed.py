# SPDX-License-Identifier: Apache-2.0
"""Communication that is still pending when its function returns: its output is recorded when it is waited for."""

import functools

import torch

from msprobe.core import session

_installed = False
_pending = {}  # id(work) -> (work, transfer)


class _Transfer:
    """A call whose output are its arguments, once all of its handles were waited for."""

    def __init__(self, call, works, args, kwargs):
        self._call = call
        self._left = {id(work) for work in works}
        self._args = args
        self._kwargs = kwargs

    def waited(self, work):
        self._left.discard(id(work))
        if not self._left:
            self.complete()

    def complete(self):
        call, self._call = self._call, None
        if call is not None:
            call.complete(self._args, self._kwargs)
        self._args = self._kwargs = None


def follow(call, result, args, kwargs):
    """Whether the result is a handle, or a list of handles, to be waited for."""
    work_type = _work_type()
    if work_type is None:
        return False
    works = [result] if isinstance(result, work_type) else [
        work for work in result if isinstance(work, work_type)] if isinstance(result, (list, tuple)) else []
    if not works:
        return False
    call.hold()
    transfer = _Transfer(call, works, args, kwargs)
    for work in works:
        _pending[id(work)] = (work, transfer)
    return True


def forget_pending():
    """At the end of a step: communication that was never waited for is recorded in its current state and released."""
    left = {id(transfer): transfer for _, transfer in _pending.values()}
    _pending.clear()
    for transfer in left.values():
        try:
            transfer.complete()
        except Exception:
            session.guard("completing a communication")


def _work_type():
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return None
    return getattr(distributed, "Work", None) or getattr(torch._C._distributed_c10d, "Work", None)


def install():
    global _installed
    work_type = _work_type()
    if _installed or work_type is None:
        return
    _installed = True
    work_type.wait = _waiting(work_type.wait)
    c10d = torch.distributed.distributed_c10d
    initialise = _announcing_rank(c10d.init_process_group)
    c10d.init_process_group = initialise
    torch.distributed.init_process_group = initialise


def _waiting(wait):
    @functools.wraps(wait)
    def wrapper(self, *args, **kwargs):
        result = wait(self, *args, **kwargs)
        if _pending:
            _, transfer = _pending.pop(id(self), (None, None))
            if transfer is not None:
                try:
                    transfer.waited(self)
                except Exception:
                    session.guard("completing a communication")
        return result
    return wrapper


def _announcing_rank(initialise):
    @functools.wraps(initialise)
    def wrapper(*args, **kwargs):
        result = initialise(*args, **kwargs)
        session.discover_rank()
        return result
    return wrapper
