# SPDX-License-Identifier: Apache-2.0
"""Trainings of online_training.py for the tests of task acc_check, each in another process, and the files that they write."""

import csv
import functools
import glob
import json
import os
import sys
import tempfile
from unittest import mock

from helpers import Case, PrecisionDebugger, torch
from prepared import Script, interpreter

_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "online_training.py")
_folder = tempfile.TemporaryDirectory(prefix="msprobe-test-")
# In the order of execution; where they are in the model.
WRONG = {
    "llama": {"Functional.softmax.0": "layers.0.attention (Attention)", "Functional.silu.1": "layers.1.mlp (Mlp)",
              "Functional.linear.13": "layers.1.mlp.down (Linear)"},
    "vit": {"Functional.layer_norm.0": "blocks.0.norm1 (LayerNorm)", "Functional.linear.1": "blocks.0.linear2 (Linear)",
            "Functional.gelu.1": "blocks.1 (TransformerEncoderLayer)"},
}


class Training:
    """A training that runs in this folder. Without a section nothing is recorded. `keys` are further keys of the configuration."""

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
        """Returns its words on stdout, and its stderr."""
        done = self._script.end()
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr


def read_rows(path):
    """The rows of a result file, the last one of each operation."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        return {row["API name"]: row for row in csv.DictReader(file)}


@functools.lru_cache(maxsize=None)
def recorded(arguments):
    """The folder of the dump, the words on stdout, and stderr of the training of these arguments, as JSON. Tests that ask for
    the same one share it."""
    positional, keys = json.loads(arguments)
    training = Training(_folder.name, *positional, **keys)
    return (getattr(training, "dump_path", None), *training.end())


@functools.lru_cache(maxsize=None)
def loses_digits():
    """Whether PyTorch's own products lose digits in bfloat16, as they do on processors without instructions for it."""
    torch.manual_seed(0)
    image, kernel = torch.randn(4, 3, 16, 16).bfloat16(), (torch.randn(48, 3, 4, 4) / 7).bfloat16()
    exact = torch.conv2d(image.double(), kernel.double(), stride=4)
    return bool(((torch.conv2d(image, kernel, stride=4) - exact).abs() > 2**-6 * exact.abs().clamp(min=1)).any())


def without_own_errors(named, precision, wrong):
    """The calls without those of which PyTorch's own kernels lose digits here: they are rightly named as wrong, too."""
    return [name for name in named if precision == "float32" or name in wrong or not loses_digits()]


class OnlineCheck(Case):
    def train(self, *arguments, **keys):
        """Runs the training of these arguments of Training, or finds it. Returns its words on stdout, and its stderr."""
        self.dump_path, printed, told = recorded(json.dumps((arguments, keys)))
        return printed, told

    def results(self):
        found, = glob.glob(self.dump_path + "/proc*/accuracy_checking_result_*.csv")
        return read_rows(found)

    def compared(self):
        """All rows of the table of compare."""
        found, = glob.glob(self.dump_path + "/proc*/compare_result_*.csv")
        with open(found, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def judged(self, function, steps=1, section=None, model=None, **keys):
        """The rows of a program that runs in this process."""
        with mock.patch.object(sys, "executable", interpreter()):
            debugger = self.open("L1", "acc_check", {"budget": None, **(section or {})}, **keys)
        for _ in range(steps):
            debugger.start(model)
            function()
            debugger.stop()
            debugger.step()
        PrecisionDebugger.close()
        return self.results()
