# SPDX-License-Identifier: Apache-2.0
"""Code that the tests of the Python front end share: sessions in fresh folders, and what they wrote."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("SKIPPED: PyTorch is not installed (python3-torch)")
    sys.exit(77)

import torch.nn as nn
import torch.nn.functional as functional

from msprobe import _native
from msprobe.pytorch import PrecisionDebugger, debugger, modules
from prepared import Script

torch.set_num_threads(1)
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


class Tree:
    """One rank's folder of one step."""

    def __init__(self, folder):
        self.folder = folder
        self.dump = self._load("dump.json")
        self.construct = self._load("construct.json")
        self.stack = self._load("stack.json")
        self.data = self.dump["data"] if self.dump else None
        self.names = list(self.data) if self.dump else []
        errors = os.path.join(folder, "dump_error_info.log")
        self.errors = ""
        if os.path.exists(errors):
            with open(errors, encoding="utf-8") as file:
                self.errors = file.read()

    def _load(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def find_tree(dump_path, step=0, rank=None):
    folders = glob.glob(os.path.join(dump_path, "step%d" % step, "proc*" if rank is None else "rank%d" % rank))
    assert len(folders) == 1, "folders of step %d in %s: %s" % (step, dump_path, folders)
    return Tree(folders[0])


class Case(unittest.TestCase):
    """A test case that opens sessions. Each gets a new folder; the last one is closed at the end."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="msprobe-test-")
        torch.manual_seed(1)

    def tearDown(self):
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def open(self, level="L1", task="statistics", section=None, **keys):
        """A debugger with this configuration."""
        self.close()
        self.dump_path = tempfile.mkdtemp(prefix="dump", dir=self.folder)
        self.config_path = os.path.join(self.folder, "config.json")
        config = {"task": task, "dump_path": self.dump_path, "level": level, "rank": [], "step": [],
                  "risk_level": "ALL", task: section or {}}
        config.update(keys)
        self.write_config(config)
        return PrecisionDebugger(config_path=self.config_path)

    def write_config(self, config):
        self.config = config
        with open(self.config_path, "w", encoding="utf-8") as file:
            json.dump(config, file)

    def close(self):
        if PrecisionDebugger._instance is None:
            return
        PrecisionDebugger.stop()
        modules.detach_all()
        debugger.apis.registry.remove()
        PrecisionDebugger._instance = None
        _native.close()

    def tree(self, step=0):
        return find_tree(self.dump_path, step)

    def steps(self):
        return sorted(os.listdir(self.dump_path))


def run_script(text, folder, *arguments, check=True, environment=None, fresh=False):
    """Runs a script in a new process. environment: variables that it gets in addition. Without `fresh` that process has
    PyTorch already."""
    path = os.path.join(folder, "script.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if fresh:
        result = subprocess.run([sys.executable, path, *map(str, arguments)], check=False, timeout=120,
                                env={**os.environ, **(environment or {})}, capture_output=True, text=True)
    else:
        result = Script(path, *arguments, environment=environment).end()
    if check and result.returncode != 0:
        raise AssertionError("the script failed with %d:\n%s%s" % (result.returncode, result.stdout, result.stderr))
    return result


# The end of a rank's script. A thread of gloo may let go of its last tensor only while the interpreter is taken down;
# then it waits for a lock that ends threads, and PyTorch (2.13 was seen) aborts. Nothing of a rank is left to do there.
END_OF_RANK = """
import atexit
atexit._run_exitfuncs()
sys.stdout.flush()
os._exit(0)
"""


def run_two_ranks(folder, script, *arguments):
    """Runs this script (which imports os and sys) in two processes with the arguments rank, folder, and these.
    Returns what each wrote to standard output; fails with what it wrote if its status is not 0."""
    path = os.path.join(folder, "script.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script + END_OF_RANK)
    ranks = [script.end() for script in [Script(path, rank, folder, *arguments, quiet=True) for rank in range(2)]]
    for rank in ranks:
        assert rank.returncode == 0, "status %d\n%s%s" % (rank.returncode, rank.stdout, rank.stderr)
    return [rank.stdout for rank in ranks]


class Block(nn.Module):
    def __init__(self, size=8, inplace=False):
        super().__init__()
        self.l1 = nn.Linear(size, size)
        self.act = nn.ReLU(inplace=inplace)

    def forward(self, x):
        return x + self.act(self.l1(x))


class Net(nn.Module):
    """Two blocks and a linear layer."""

    def __init__(self, size=8, inplace=False):
        super().__init__()
        self.b1 = Block(size, inplace)
        self.b2 = Block(size, inplace)
        self.out = nn.Linear(size, 3)

    def forward(self, x):
        return self.out(self.b2(self.b1(x)))


def make_net(**keys):
    torch.manual_seed(3)
    return Net(**keys)


def make_input(rows=4, size=8):
    torch.manual_seed(5)
    return torch.randn(rows, size)


__all__ = ["Block", "Case", "Net", "PrecisionDebugger", "Tree", "VERSION", "find_tree", "functional", "make_input",
           "make_net", "nn", "os", "run_script", "run_two_ranks", "torch", "unittest"]
