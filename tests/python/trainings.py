# SPDX-License-Identifier: Apache-2.0
"""Trainings of online_training.py, each in a process of its own."""

import json
import os
import tempfile

from prepared import Script, interpreter

_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "online_training.py")


class Training:
    """In this folder. Without a section nothing is recorded. The keys are further ones of the configuration."""

    def __init__(self, folder, kind, precision, health, steps, section=None, environment=None, task="acc_check", **keys):
        words = [kind, precision, health, steps]
        if section is not None:
            self.dump_path = tempfile.mkdtemp(prefix="dump", dir=folder)
            words.append(os.path.join(folder, os.path.basename(self.dump_path) + ".json"))
            with open(words[-1], "w", encoding="utf-8") as file:
                json.dump({"task": task, "dump_path": self.dump_path, "level": "L1", "risk_level": "ALL", task: section,
                           **keys}, file)
        self._script = Script(_SCRIPT, *words, environment={"JUDGE_PYTHON": interpreter(), **(environment or {})}, quiet=True)

    def end(self):
        """(what it printed, as words, what it told)"""
        done = self._script.end()
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr
