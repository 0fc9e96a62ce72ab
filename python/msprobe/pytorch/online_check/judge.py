# SPDX-License-Identifier: Apache-2.0
"""The judging process: `msprobe acc_check -api_info -`. data/precheck/PROTOCOL.md describes the messages to it."""

import json
import os
import select
import subprocess
import sys
import time

from msprobe.core import command
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException

from .entries import TensorFile

_LONGEST_CALL = 60         # seconds for one reference; the judge skips a call that takes longer
_GRACE = 30                # seconds
_LONGEST_START = 300       # seconds, for loading PyTorch from a slow disk
_LONGEST_END = 300         # seconds, for calls that are still waiting at the end


def _is_ready(descriptor, event, end):
    look = select.poll()
    look.register(descriptor, event)
    return bool(look.poll(max(end - time.monotonic(), 0) * 1000))


class Lost(Exception):
    """The judge cannot be used any more, and the reason."""


class Judge:
    answers = True

    def __init__(self, begin):
        """Raises MsprobeException if the judge cannot be started, or does not support a setting."""
        self._process = None
        self._buffer = b""
        self._has_judged = False
        self.alive = False
        program = command.located()
        self.file, self._replies, other_end = None, -1, -1
        try:
            self.file = TensorFile()
            self._replies, other_end = os.pipe()
            self._start(program, other_end)
        except OSError as error:
            self._close()
            raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR,
                                   "task acc_check: %s cannot be run: %s" % (program, error)) from None
        finally:
            if other_end >= 0:
                os.close(other_end)
        begin = dict(begin, timeout=_LONGEST_CALL, tensors=self.file.descriptor, replies=other_end,
                     python=sys.executable or "python3")
        try:
            self._write({"begin": begin})
            answer = self._read(_LONGEST_START)
            if "fatal" in answer:
                raise Lost(answer["fatal"])
        except Lost as reason:
            self._end_at_once()
            raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, str(reason)) from None
        self.skipped = {tuple(one) for one in answer["skipped"]}
        self.alive = True

    def _start(self, program, other_end):
        arguments = [program, "acc_check", "-api_info", "-"]
        if os.environ.get("MSPROBE_LOG_LEVEL") in ("3", "4"):
            arguments.append("--quiet")
        try:
            os.fstat(2)
            shown = 2
        except OSError:
            shown = subprocess.DEVNULL
        # The judge runs in a separate session: Ctrl-C is for the training, and the judge reports its results afterwards.
        self._process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=shown, stderr=shown, bufsize=0, start_new_session=True,
            pass_fds=(self.file.descriptor, other_end))
        os.set_blocking(self._process.stdin.fileno(), False)

    @property
    def process_id(self):
        return self._process.pid

    # ------------------------------------------------------------------ messages

    @staticmethod
    def is_full(size):
        """Calls are sent one by one, so there is always room."""
        return False

    @staticmethod
    def described(part):
        """Returns the members of a message that describe a part of a call."""
        return {"entry": part.entry, "tensors": part.tensors, "blocks": part.blocks}

    def tell(self, message):
        """Sends a message that needs no answer. Raises Lost."""
        self._write(message)

    def ask(self, message, number, calls):
        """Sends a message that makes the judge judge `calls` calls now. Returns (its answer, the seconds that starting
        the judge's own PyTorch may have taken). Raises Lost."""
        began = time.monotonic()
        self._write(message)
        limit = 2 * _LONGEST_CALL * calls + _GRACE + (0 if self._has_judged else _LONGEST_START)
        while True:
            answer = self._read(limit)
            if "fatal" in answer:
                raise Lost("says: %s" % answer["fatal"])
            if answer.get("id") == number:
                break
        first, self._has_judged = not self._has_judged, True
        return answer, time.monotonic() - began if first else 0.0

    def _write(self, message):
        left = memoryview((json.dumps(message) + "\n").encode())
        end = time.monotonic() + 2 * _LONGEST_CALL + _GRACE
        pipe = self._process.stdin.fileno()
        while left:
            try:
                left = left[os.write(pipe, left):]
            except BlockingIOError:
                if not _is_ready(pipe, select.POLLOUT, end):
                    raise Lost("does not answer") from None
            except OSError as error:
                raise Lost(self._fate() or "cannot be reached: %s" % error) from None

    def _read(self, limit):
        end = time.monotonic() + limit
        while b"\n" not in self._buffer:
            if not _is_ready(self._replies, select.POLLIN, end):
                raise Lost("does not answer")
            piece = os.read(self._replies, 1 << 16)
            if not piece:
                raise Lost(self._fate() or "ended")
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return json.loads(line.decode())
        except ValueError:
            raise Lost("sent no JSON") from None

    def _fate(self):
        try:
            status = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return ""
        return "was ended by signal %d" % -status if status < 0 else "ended with status %d" % status

    # ------------------------------------------------------------------ the end

    def lose(self, reason):
        """Reports once that the judge is lost. The training continues."""
        if self.alive:
            self.alive = False
            log.warn("task acc_check: the judging process %s: nothing is judged any more" % reason)
            self._end_at_once()

    def close(self):
        """Ends the judge without a message."""
        self.alive = False
        self._end_at_once()

    def finish(self):
        """Lets the judge finish its waiting calls and report its results."""
        if not self.alive:
            return
        self.alive = False
        try:
            # Forked processes may still have the pipe open.
            self._write({"end": 0})
            self._process.stdin.close()
            self._process.wait(_LONGEST_END)
        except subprocess.TimeoutExpired:
            log.warn("task acc_check: the judging process does not end")
        except Lost as reason:
            log.warn("task acc_check: the judging process %s" % reason)
        self._end_at_once()

    def _end_at_once(self):
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process.stdin.close()
        self._close()

    def _close(self):
        if self.file is not None:
            self.file.close()
        if self._replies >= 0:
            os.close(self._replies)
            self._replies = -1


class Elsewhere:
    """Takes the place of a judge that this training starts: messages go to another process, which never answers."""

    answers = False

    def __init__(self, begin):
        """Raises MsprobeException if a setting is not supported; the command in this installation checks that."""
        known = Judge(begin)
        known.close()
        self.skipped = known.skipped
        self.begin = {"begin": dict(begin, python="python3", timeout=0)}
