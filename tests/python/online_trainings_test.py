# SPDX-License-Identifier: Apache-2.0
"""Task acc_check in trainings that take long: of right kernels, and judged by a process that shares a folder with them."""

import os
import re
import subprocess
import tempfile
import unittest

from msprobe.core import command
from msprobe.core.common.exceptions import MsprobeException
from prepared import interpreter
from trainings import WRONG, OnlineCheck


class Healthy(OnlineCheck):
    def check(self, kind, precision, steps):
        plain, _ = self.train(kind, precision, "healthy", steps)
        printed, told = self.train(kind, precision, "healthy", steps, {"budget": None})
        self.assertEqual(printed[:2], plain[:2])
        lines = [line for line in told.splitlines() if not line.startswith("online pre-check: step ")]  # one each minute
        self.assertEqual(len(lines), 5, told)
        self.assertIn(" of steps 0 to %d, by PyTorch " % (steps - 1), lines[1])
        self.assertIn(", 0 error, ", lines[1])

    def test_llama(self):
        self.check("llama", "amp", 30)

    def test_vit(self):
        self.check("vit", "float32", 100)

    def test_what_never_had_its_turn_is_counted(self):
        _, told = self.train("vit", "float32", "healthy", 3, {"budget": None, "interval": 50})
        found = re.search(r"task acc_check: (\d+) of (\d+) operations of a step were never judged", told)
        self.assertTrue(found and 0 < int(found[1]) < int(found[2]), told)

    def test_the_judge_may_die(self):
        plain, _ = self.train("llama", "float32", "healthy", 12)
        printed, told = self.train("llama", "float32", "healthy", 12, {"budget": None}, {"KILL_IN": "3"})
        self.assertEqual(printed[:2], plain[:2])
        self.assertEqual(told.count("warning"), 1, told)
        self.assertIn("warning: task acc_check: the judging process was ended by signal 9: nothing is judged any more", told)

    def test_memory_does_not_grow(self):
        printed, _ = self.train("vit", "float32", "healthy", 100, {"budget": None})
        half, whole = map(int, printed[2:])
        self.assertLess(whole - half, 2000)  # KiB


class SharedFolders(OnlineCheck):
    def start_judge(self, folder, results):
        return subprocess.Popen([command.find(), "acc_check", "-api_info", folder, "--wait", "-o", results, "--python",
                                 interpreter(), "--fail-on", "error"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                universal_newlines=True)

    def test_another_process_judges(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        results = os.path.join(self.folder, "results")
        judge = self.start_judge(folder, results)
        plain, _ = self.train("llama", "float32", "faulty", 8)
        printed, told = self.train("llama", "float32", "faulty", 8, {"budget": None, "nfs_path": folder, "compare": True})
        self.assertEqual(printed[:2], plain[:2])
        self.assertNotIn("is wrong", told)
        told, _ = judge.communicate(timeout=120)
        self.assertEqual(judge.returncode, 1, told)
        named = [line.split()[1] for line in told.splitlines() if line.startswith("  error")]
        self.assertEqual(named, list(WRONG["llama"]), told)
        self.assertEqual(os.listdir(folder), [])
        self.assertEqual(os.listdir(self.dump_path), [])
        self.dump_path = results
        self.assertEqual({name for name, row in self.results().items() if "error" in row["Forward Verdict"]},
                         set(WRONG["llama"]))
        self.assertEqual(sorted(name for name in os.listdir(results) if name.startswith("step")), ["step5", "step6"])
        self.assertEqual({row["Step"] for row in self.compared()}, {"0", "5"})

    def test_the_judge_may_come_later(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        self.train("vit", "float32", "healthy", 3, {"budget": None, "nfs_path": folder})
        training, = os.listdir(folder)
        self.assertEqual(sorted(os.listdir(os.path.join(folder, training))),
                         ["messages.jsonl", "tensors.0", "tensors.1", "tensors.2", "tensors.3"])
        told, _ = self.start_judge(folder, os.path.join(self.folder, "results")).communicate(timeout=120)
        self.assertIn(" of steps 0 to 2, by PyTorch ", told)
        self.assertEqual(os.listdir(folder), [])

    def test_one_that_sends_nonsense_does_not_disturb_the_others(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        self.train("vit", "float32", "healthy", 2, {"budget": None, "nfs_path": folder})
        for name, text in (("a", "{"), ("b", '{"begin": 1}'), ("c", '{"begin": {"folder": "/", "cases": "/", "python": "/",'
                                                              ' "device": "cpu", "timeout": 1}}\n{"call": 0}')):
            os.mkdir(os.path.join(folder, name))
            with open(os.path.join(folder, name, "messages.jsonl"), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        missing = ('{"begin": {"folder": "/", "cases": "/", "python": "/", "device": "cpu", "timeout": 1}}\n{"call": 1, "type": "Torch",'
                   '"name": "sin", "number": 0, "step": 0, "leaf": "rank0", "file": 7, "entry": {"input_args": []}, "tensors": {}}\n')
        os.mkdir(os.path.join(folder, "d"))
        with open(os.path.join(folder, "d", "messages.jsonl"), "w", encoding="utf-8") as file:
            file.write(missing)
        for name in "efg":
            os.mkdir(os.path.join(folder, name))
        os.symlink("/etc/passwd", os.path.join(folder, "e", "messages.jsonl"))
        os.mkfifo(os.path.join(folder, "f", "messages.jsonl"))
        os.mkdir(os.path.join(folder, "g", "messages.jsonl"))
        told, _ = self.start_judge(folder, os.path.join(self.folder, "results")).communicate(timeout=120)
        self.assertIn(" of steps 0 to 1, by PyTorch ", told)
        for name in "abcdefg":
            self.assertRegex(told, "warning: %s: .*: no more of its calls are judged\n" % name)

    def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(MsprobeException, "nfs_path: .*No such file or directory"):
            self.open("L1", "acc_check", {"nfs_path": os.path.join(self.folder, "none")})


if __name__ == "__main__":
    unittest.main()
