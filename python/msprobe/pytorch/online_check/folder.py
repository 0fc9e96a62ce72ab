# SPDX-License-Identifier: Apache-2.0
"""Writes calls to a folder, for `msprobe acc_check -api_info FOLDER` on any machine that shares the folder."""

import json
import os
import socket
import time

from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException

from .entries import TensorFile
from .judge import Elsewhere, Judge, Lost

_MOST_WAITING = 1 << 30  # limit for the bytes of tensors that the judge has not removed yet


class _TensorFiles(TensorFile):
    """One file for each step. The judge removes the file after it has judged everything in it."""

    def __init__(self, place):
        self._place = place
        self._waiting = {}  # path -> bytes
        self.number = -1
        self.descriptor = -1
        self.next()

    def begin_page(self):
        pass  # the judge removes whole files

    def next(self):
        if self.descriptor >= 0:
            self._waiting[self._path()] = self.end
            self.close()
        self.number += 1
        self.end = 0
        self.descriptor = os.open(self._path(), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._waiting = {path: size for path, size in self._waiting.items() if os.path.exists(path)}

    @property
    def waiting(self):
        return self.end + sum(self._waiting.values())

    def close(self):
        descriptor, self.descriptor = self.descriptor, -1  # first, because another file may soon have this number
        if descriptor >= 0:
            os.close(descriptor)

    def _path(self):
        return os.path.join(self._place, "tensors.%d" % self.number)


class SharedFolder(Elsewhere):
    """Writes messages to a folder."""

    def __init__(self, begin, folder):
        """Raises MsprobeException if the folder is not writable, or if a setting is not supported."""
        super().__init__(begin)
        self.alive = False
        place = os.path.join(os.path.abspath(folder), "%s-%d-%d" % (socket.gethostname(), os.getpid(), time.time()))
        try:
            os.mkdir(place)
            self.file = _TensorFiles(place)
            self._messages = os.open(os.path.join(place, "messages.jsonl"),
                                     os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "nfs_path: %s" % error) from None
        self.alive = True
        self.tell(self.begin)

    described = staticmethod(Judge.described)

    def is_full(self, size):
        return self.file.waiting > _MOST_WAITING

    def tell(self, message):
        """Raises Lost."""
        message = dict(message, file=self.file.number)
        left = memoryview((json.dumps(message) + "\n").encode())
        try:
            while left:
                left = left[os.write(self._messages, left):]
        except OSError as error:
            raise Lost("cannot be written to: %s" % error) from None

    def ask(self, message, number, calls):
        self.tell(message)
        if "step_ends" in message:
            try:
                self.file.next()
            except OSError as error:
                raise Lost("cannot be written to: %s" % error) from None
        return {"refused": False}, 0.0

    def lose(self, reason):
        if self.alive:
            self.alive = False
            log.warn("task acc_check: nfs_path %s: nothing is judged any more" % reason)
            self._close()

    def finish(self):
        if not self.alive:
            return
        try:
            self.tell({"end": 0})
        except Lost as reason:
            return self.lose(str(reason))
        self.alive = False
        self._close()

    def _close(self):
        self.file.close()
        os.close(self._messages)
