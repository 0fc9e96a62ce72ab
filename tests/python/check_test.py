# SPDX-License-Identifier: Apache-2.0
"""msprobe.pytorch.check() and `python -m msprobe bisect`: two trainings from the recording to the last word."""

import shutil
import subprocess
import sys

from helpers import *
import msprobe
from msprobe import checking
from msprobe.core import command, overriding

if command.find() is None:
    print("SKIPPED: the command was not built")
    sys.exit(77)

# Trains with a kernel that is right, wrong on a tile, or gives the elements of its output in another order.
TRAINING = '''
import os, sys
import torch
right = torch.nn.functional.linear
kind = [None]

class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        y = right(x, w, b)
        if kind[0] == "tile":
            y[3:7, 2:9] = 0
        if kind[0] == "nan":
            y[:] = float("nan")
        return y

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        with torch.no_grad():
            return right(g, w.t()), right(g.t(), x.t()), g.sum(0)

def linear(x, w, b=None):
    return Wrong.apply(x, w, b) if w.shape == (24, 16) else right(x, w, b)

torch.nn.functional.linear = linear
import msprobe

def train(what, dump_path=None, seed=1, steps=3):
    kind[0] = what
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16),
                                torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.GELU()), torch.nn.Linear(24, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with msprobe.record(model, dump_path, optimizer=optimizer):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(32, 16)).square().mean().backward()
            optimizer.step()
'''
namespace = {}
exec(compile(TRAINING, "training", "exec"), namespace)
train = namespace["train"]

from msprobe.pytorch import check


class Check(Case):
    def test_agreement(self):
        found = check(lambda: train("right"), lambda: train("right"))
        self.assertTrue(found)
        self.assertTrue(found.is_final)
        self.assertIsNone(found.culprit)
        self.assertIsNone(found.tensors)
        self.assertTrue(repr(found).startswith("no culprit"), repr(found))
        self.assertEqual(sorted(os.listdir(os.path.join(found.folder, "statistics", "a"))), ["step0", "step1"])
        folder = found.folder
        del found
        self.assertFalse(os.path.exists(folder))

    def test_a_likely_answer_becomes_certain_with_tensors(self):
        path = os.path.join(self.folder, "out")
        found = check(lambda: train("tile"), lambda: train("right"), steps=1, output_path=path)
        self.assertFalse(found)
        self.assertEqual(found.statistics.culprit.confidence, "likely")
        self.assertEqual((found.culprit.confidence, found.culprit.kind), ("certain", "replay"))
        self.assertEqual(found.culprit.entry, "Functional.linear.1.forward")
        self.assertIn("this run's kernel is wrong", repr(found))
        self.assertIn("by statistics Functional.linear.1.forward was likely", repr(found))
        self.assertTrue(found.is_final)
        self.assertEqual(found.notes, [])
        again = find_tree(os.path.join(path, "tensors", "a"))
        self.assertIn("Module.2.0.Linear.forward.0", again.names)
        self.assertNotIn("Module.3.Linear.forward.0", again.names)
        self.assertLess(len(again.names), len(find_tree(os.path.join(path, "statistics", "a")).names))
        with self.assertRaises(msprobe.MsprobeException) as raised:
            check(lambda: None, lambda: None, output_path=path)
        self.assertIn("is not empty", str(raised.exception))

    def test_a_training_that_does_not_repeat_itself(self):
        seeds = iter([1, 2])
        found = check(lambda: train("tile", seed=next(seeds)), lambda: train("right"), steps=1)
        self.assertFalse(found)
        self.assertTrue([note for note in found.notes if note.startswith("train_a is not deterministic")], repr(found))
        self.assertIn("is not deterministic", repr(found))

    def test_memory_that_is_only_written_to(self):
        """Its earlier contents differ each time, which does not matter to the training."""
        found = torch.tensor([3.0, 5.0, 7.0])

        def recorded(name, there, values):
            torch.manual_seed(1)
            folder = os.path.join(self.folder, name)
            with msprobe.record(dump_path=folder, risk_level="ALL") as recording:
                mask = torch.tensor([there] * 3).bernoulli_(0.5)
                torch.abs(found, out=torch.tensor([there] * 3))
                torch.tensor([[there], [there + 1]]).t()
                torch.mul(values, mask)
            recording.close()
            return folder

        first = recorded("first", 2.0, found)
        self.assertIn("Tensor.bernoulli_.0.forward", find_tree(first).names)
        self.assertIn("Tensor.t.0.forward", find_tree(first).names)
        self.assertIsNone(checking.first_other(first, recorded("second", 4.0, found)))
        self.assertEqual(checking.first_other(first, recorded("third", 2.0, found + 1)), "Torch.mul.0.forward")

    def test_tensors_that_do_not_confirm(self):
        """The second time the kernel is right."""
        kinds = iter(["tile", "right"])
        found = check(lambda: train(next(kinds)), lambda: train("right"), steps=1)
        self.assertFalse(found)
        self.assertFalse(found.is_final)
        self.assertIs(found.culprit, found.statistics.culprit)
        self.assertIn("tensors do not show it", repr(found))

    def test_recorders(self):
        """A PrecisionDebugger is used as well; nothing goes where the program says."""
        def by_debugger(what):
            namespace["kind"][0] = what
            net = make_net()
            debugger = PrecisionDebugger(task="structure", dump_path=os.path.join(self.folder, "elsewhere"), level="mix")
            for _ in range(3):
                debugger.start(net)
                net(make_input()).sum().backward()
                debugger.stop()
                debugger.step()
        self.assertTrue(check(lambda: by_debugger("right"), lambda: by_debugger("right")))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "elsewhere")))
        self.assertIsNone(PrecisionDebugger._instance)

    def test_errors(self):
        with self.assertRaises(msprobe.MsprobeException) as raised:
            check(lambda: train("right"), lambda: None)
        self.assertIn("train_b recorded nothing", str(raised.exception))
        with self.assertRaises(ZeroDivisionError):
            check(lambda: 1 // 0, lambda: None)
        self.assertEqual(overriding.wanted(), {})
        for keys in ({"steps": 0}, {"steps": "2"}):
            with self.assertRaises(msprobe.MsprobeException):
                check(lambda: None, lambda: None, **keys)
        with self.assertRaises(msprobe.MsprobeException):
            check(3, lambda: None)

    def test_names_of_calls(self):
        for name, base in (("Functional.linear.10.forward.input.0", "Functional.linear.10."),
                           ("Module.b1.l1.Linear.backward.0.output.0", "Module.b1.l1.Linear."),
                           ("Module.0.Linear.parameters_grad.weight", "Module.0.Linear."),
                           ("Functional.linear.10.forward", "Functional.linear.10."), ("N/A", ""), (None, "")):
            self.assertEqual(checking._base(name), base)


class Bisect(Case):
    def setUp(self):
        super().setUp()
        self.out = os.path.join(self.folder, "out")
        self.script = os.path.join(self.folder, "train.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(TRAINING + 'train(sys.argv[1], "dump")\nprint("trained")\nif len(sys.argv) > 2: sys.exit(3)\n')

    def bisect(self, *arguments):
        return subprocess.run([sys.executable, "-W", "ignore", "-m", "msprobe", "bisect", "-o", self.out] + list(arguments),
                              check=False, capture_output=True, text=True, cwd=self.folder)

    def side(self, *arguments):
        return ["--", sys.executable, "-W", "ignore", self.script] + list(arguments)

    def test_culprit(self):
        done = self.bisect("--steps", "1", "--fail-on", "culprit", *self.side("tile"), *self.side("right"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(done.stdout.startswith("culprit"), done.stdout)
        self.assertIn("this run's kernel is wrong", done.stdout)
        self.assertIn("report: " + os.path.join(self.out, "report.html"), done.stdout)
        self.assertTrue(os.path.exists(os.path.join(self.out, "report.html")))
        self.assertNotIn("trained", done.stdout)
        self.assertEqual(done.stderr.count("trained"), 4)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "dump")))

    def test_agreement_of_a_script_that_fails_later(self):
        done = self.bisect("--fail-on", "culprit", *self.side("right"), *self.side("right", "fails"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("no culprit"), done.stdout)
        self.assertIn("ended with status 3", done.stderr)

    def test_a_part_that_is_not_compared(self):
        for allowed, status in ((), 2), (("--allow-uncompared", "99"), 0):
            done = self.bisect("--fail-on", "culprit", *allowed, *self.side("nan"), *self.side("nan"))
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("could be compared", done.stdout)
            shutil.rmtree(self.out)

    def test_errors(self):
        nothing = ["--", sys.executable, "-c", "pass"]
        for arguments, said in ((self.side("right") + nothing, "recorded nothing"), (["--", "true"], "two commands"),
                                (["--", "true", "--"], "a command is empty"),
                                (["--", "a", "--", "b", "--", "c"], "3 times"),
                                (["--steps", "0"] + nothing + nothing, "invalid"),
                                (["--", "/nowhere/train"] + nothing, "cannot be run")):
            done = self.bisect(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            if os.path.exists(self.out):
                os.rename(self.out, self.out + str(len(os.listdir(self.folder))))


if __name__ == "__main__":
    unittest.main()
