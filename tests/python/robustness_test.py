# SPDX-License-Identifier: Apache-2.0
"""Processes that end badly, threads, forks, folders that cannot be written: files stay valid, training goes on."""

import signal
import tempfile
import threading

from helpers import *

BEGIN = """
import os, sys, torch
from msprobe.pytorch import PrecisionDebugger
folder = sys.argv[1]
debugger = PrecisionDebugger(dump_path=os.path.join(folder, "dump"), level="L1", task="statistics")
debugger.start()
x = torch.ones(4)
for _ in range(50):
    x = torch.sigmoid(x)
"""


class Robustness(Case):
    def script(self, text, **keys):
        folder = tempfile.mkdtemp(dir=self.folder)
        result = run_script(BEGIN + text, folder, folder, **keys)
        return result, find_tree(os.path.join(folder, "dump"))

    def test_end_without_stop(self):
        _, tree = self.script("")
        self.assertEqual(len(tree.names), 50)

    def test_uncaught_exception(self):
        result, tree = self.script("raise ValueError('mine')", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("ValueError: mine", result.stderr)
        self.assertEqual(len(tree.names), 50)

    def test_killed(self):
        for text in ("os.kill(os.getpid(), 9)", "os._exit(3)"):
            _, tree = self.script(text, check=False)
            self.assertIsInstance(tree.data, dict)

    def test_terminated(self):
        result, tree = self.script("os.kill(os.getpid(), %d)" % signal.SIGTERM, check=False)
        self.assertEqual(result.returncode, -signal.SIGTERM)
        self.assertIsInstance(tree.data, dict)

    def test_fork(self):
        _, tree = self.script("""
pid = os.fork()
y = torch.relu(x)
if pid == 0:
    w = torch.ones(2, requires_grad=True)
    torch.sigmoid(w).sum().backward()
    debugger.stop()
    debugger.step()
    debugger.start()
    PrecisionDebugger.save(w, "w")
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
debugger.stop()
""")
        self.assertEqual((tree.names[-1], len(tree.names)), ("Torch.relu.0.forward", 51))

    def test_session_of_a_child(self):
        run_script("""
import os, sys, torch
from msprobe.pytorch import PrecisionDebugger
pid = os.fork()
if pid == 0:
    debugger = PrecisionDebugger(dump_path=sys.argv[1] + "/dump", level="L1", task="statistics")
    debugger.start()
    torch.sigmoid(torch.zeros(1))
    debugger.stop()
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
""", self.folder, self.folder)
        self.assertEqual(find_tree(os.path.join(self.folder, "dump")).names, ["Torch.sigmoid.0.forward"])

    def test_folder_that_cannot_be_written(self):
        blocked = os.path.join(self.folder, "file")
        with open(blocked, "w", encoding="utf-8"):
            pass
        result = run_script("""
import sys, torch
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(dump_path=sys.argv[1] + "/file/dump", level="L1", task="statistics")
for _ in range(2):
    debugger.start()
    assert torch.sigmoid(torch.zeros(1)).item() == 0.5
    debugger.stop()
    debugger.step()
""", self.folder, self.folder)
        self.assertIn("recording fails", result.stderr)
        self.assertIn("file", result.stderr)

    def test_threads(self):
        debugger = self.open("L1")
        debugger.start()

        def work():
            for _ in range(200):
                torch.sigmoid(torch.ones(3))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        debugger.stop()
        tree = self.tree()
        self.assertEqual(len(tree.names), 800)
        self.assertTrue(all(list(entry) == ["input_args", "input_kwargs", "output"] for entry in tree.data.values()))

    def test_steps(self):
        debugger = self.open("L1", step=[0, "2-3"])
        for _ in range(6):
            debugger.start()
            torch.sigmoid(torch.ones(3))
            debugger.stop()
            debugger.step()
        self.assertEqual(self.steps(), ["step0", "step2", "step3"])

    def test_start_and_stop_again_in_one_step(self):
        debugger = self.open("L1")
        for _ in range(2):
            debugger.start()
            torch.sigmoid(torch.ones(3))
            debugger.stop()
            torch.sigmoid(torch.ones(3))
        self.assertEqual(self.tree().names, ["Torch.sigmoid.0.forward", "Torch.sigmoid.1.forward"])

    def test_files_are_valid_while_recording(self):
        debugger = self.open("L1")
        debugger.start()
        self.assertEqual(self.tree().data, {})
        for _ in range(100):
            torch.sigmoid(torch.ones(3))
        self.assertIsInstance(self.tree().data, dict)
        debugger.stop()
        self.assertEqual(len(self.tree().names), 100)

    def test_what_is_held_is_recorded_after_a_program_has_replaced_the_function(self):
        class Holding(nn.Module):
            def __init__(self):
                super().__init__()
                self.act = functional.silu

            def forward(self, x):
                return self.act(x)

        original = functional.silu
        model = Holding()
        debugger = self.open("L1")
        try:
            for step in range(3):
                debugger.start(model=model)
                model(torch.ones(2))
                functional.silu(torch.ones(2))
                debugger.stop()
                debugger.step()
                self.assertIs(model.act, original)
                functional.silu = lambda x, step=step: original(x) + step
            self.close()
            for step in range(3):
                names = self.tree(step).names
                self.assertIn("Functional.silu.0.forward", names)
                self.assertIn("Functional.silu.1.forward", names)
        finally:
            functional.silu = original

    def test_a_function_that_a_program_deletes_stays_deleted(self):
        original = functional.silu
        debugger = self.open("L1")
        try:
            for step in range(4):
                debugger.start()
                functional.relu(torch.ones(2))
                debugger.stop()
                debugger.step()
                self.assertEqual(self.tree(step).names, ["Functional.relu.0.forward"])
                if step == 0:
                    del functional.silu
                elif step == 1:
                    self.assertFalse(hasattr(functional, "silu"))
                    functional.silu = None
                else:
                    self.assertIsNone(functional.silu)
        finally:
            functional.silu = original


if __name__ == "__main__":
    unittest.main()
