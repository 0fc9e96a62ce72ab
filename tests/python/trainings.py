# SPDX-License-Identifier: Apache-2.0
"""Trainings of online_training.py, each in a process of its own: a fork of one that has PyTorch, whose import takes longer
than most of them."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
import time

_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "online_training.py")
_LONGEST_S = 150
_scratch = tempfile.TemporaryDirectory(prefix="msprobe-trainings-")
_server = None


def _tell(request):
    global _server
    if _server is None:
        _server = subprocess.Popen([sys.executable, "-W", "ignore", _SCRIPT, "--serve"], stdin=subprocess.PIPE)
        atexit.register(_server.communicate)
    _server.stdin.write(json.dumps(request).encode() + b"\n")
    _server.stdin.flush()


class Training:
    """Without a section nothing is recorded. The keys are further ones of the configuration."""

    def __init__(self, kind, precision, health, steps, section=None, environment=None, task="acc_check", **keys):
        self.folder = tempfile.mkdtemp(dir=_scratch.name)
        self.dump_path = os.path.join(self.folder, "dump")
        words = [kind, precision, health, str(steps)]
        if section is not None:
            os.mkdir(self.dump_path)
            words.append(os.path.join(self.folder, "config.json"))
            with open(words[-1], "w", encoding="utf-8") as file:
                json.dump({"task": task, "dump_path": self.dump_path, "level": "L1", "risk_level": "ALL", task: section,
                           **keys}, file)
        _tell([words, environment or {}, self.folder])

    def _read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def end(self):
        """(what it printed, as words, what it told)"""
        end = time.monotonic() + _LONGEST_S
        while not os.path.exists(os.path.join(self.folder, "status")):
            assert time.monotonic() < end and _server.poll() is None, "a training does not end"
            time.sleep(0.01)
        told = self._read("stderr")
        assert self._read("status") == "0", told
        return self._read("stdout").split(), told
