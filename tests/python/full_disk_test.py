# SPDX-License-Identifier: Apache-2.0
"""A disk that is full from some moment on: the training goes on, the files are whole, and the last line says what of that
which was recorded is there, what is not, and why.

The limit of the size of files stands for the disk: what is written beyond it fails, with another reason."""

import contextlib
import glob
import json
import re
import resource
import signal

from helpers import *
import msprobe
from msprobe.core import session
from msprobe.core.common import log

REASON = "File too large"


@contextlib.contextmanager
def full_disk(free=0):
    """No file can be larger."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


class FullDisk(Case):
    def setUp(self):
        super().setUp()
        session._rank[0] = None
        log._said.clear()
        self.told = []
        self.addCleanup(setattr, log, "_write", log._write)
        log._write = lambda kind, text: self.told.append(kind + text)

    def step(self, debugger, calls=11, **start):
        debugger.start(**start)
        for _ in range(calls):
            torch.sigmoid(torch.ones(3))
        debugger.stop()

    def on_disk(self):
        """How many entries each step has there; the files are whole."""
        entries = {}
        for path in sorted(glob.glob(os.path.join(self.dump_path, "step*", "*", "dump.json"))):
            with open(path, encoding="utf-8") as file:
                entries[path.split(os.sep)[-3]] = len(json.load(file)["data"])
        return entries

    def result(self):
        """The line that tells it."""
        PrecisionDebugger.close()
        lines = [line for line in self.told if re.search(r"recorded .* in \d+\.\d s", line) or "nothing was recorded" in line]
        self.assertEqual(len(lines), 1, self.told)
        leftover = list(glob.glob(self.dump_path + "/**/.msprobe-*", recursive=True))
        self.assertEqual(leftover, [])
        return lines[0]

    def check_result(self, line, entries, steps, *lost):
        begin, _, rest = line.partition("; ")
        self.assertRegex(begin, r"^warning: recorded %s of %s to .* in \d+\.\d s$" % (entries, steps))
        for text in lost:
            self.assertIn(text, rest)
        self.assertTrue(rest.endswith(REASON), line)

    def test_full_when_a_step_begins(self):
        debugger = self.open("L1")
        for step in range(4):
            with full_disk() if step == 2 else contextlib.nullcontext():
                self.step(debugger)
                debugger.step()
        line = self.result()
        self.assertEqual({name: count for name, count in self.on_disk().items() if count},
                         {"step0": 11, "step1": 11, "step3": 11})
        self.check_result(line, "33 entries", "3 steps", "step2 could not be started")

    def test_full_while_a_step_is_recorded(self):
        debugger = self.open("L1")
        for step in range(3):
            debugger.start()
            for _ in range(11):
                torch.sigmoid(torch.ones(3))
            with full_disk() if step == 2 else contextlib.nullcontext():
                debugger.stop()
                debugger.step()
        line = self.result()
        self.assertEqual(self.on_disk(), {"step0": 11, "step1": 11, "step2": 0})
        self.check_result(line, "22 entries", "2 steps", "11 entries")

    def test_full_until_the_end(self):
        debugger = self.open("L1")
        self.step(debugger)
        debugger.step()
        debugger.start()
        for _ in range(11):
            torch.sigmoid(torch.ones(3))
        with full_disk():
            line = self.result()
        self.assertEqual(self.on_disk(), {"step0": 11, "step1": 0})
        self.check_result(line, "11 entries", "1 step", "11 entries")

    def test_full_for_a_while(self):
        debugger = self.open("L1")
        debugger.start()
        for _ in range(5):
            torch.sigmoid(torch.ones(3))
        with full_disk():
            debugger.stop()
        debugger.step()
        line = self.result()
        self.assertEqual(self.on_disk(), {"step0": 5})
        self.assertRegex(line, r"^recorded 5 entries of 1 step to .* in \d+\.\d s$")

    def test_full_from_the_start(self):
        debugger = self.open("L1")
        with full_disk():
            for _ in range(2):
                self.step(debugger)
                debugger.step()
        line = self.result()
        self.assertEqual(sum(self.on_disk().values()), 0)
        self.assertIn("nothing was recorded: ", line)
        self.assertTrue(line.endswith(REASON), line)

    def test_steps_of_an_optimizer(self):
        self.dump_path = os.path.join(self.folder, "dump")
        net = make_net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        with msprobe.record(net, self.dump_path, optimizer=optimizer) as recording:
            for step in range(8):
                with full_disk() if 2 <= step < 6 else contextlib.nullcontext():
                    net(make_input()).sum().backward()
                    optimizer.step()
        recording.close()
        line = self.result()
        written = {name: count for name, count in self.on_disk().items() if count}
        self.assertEqual(list(written), ["step0", "step1", "step7"])
        self.check_result(line, "%d entries" % sum(written.values()), "3 steps", "entries and 2 files were lost",
                          "step3, step4, step5 and 1 more could not be started")

    def test_begun_at_the_second_try(self):
        debugger = self.open("L1")
        with full_disk():
            debugger.start()
            debugger.stop()
        self.step(debugger)
        line = self.result()
        self.assertEqual(self.on_disk(), {"step0": 11})
        self.assertNotIn("could not be started", line)

    def test_saved_values_alone(self):
        debugger = self.open("debug")
        with full_disk():
            debugger.save(torch.ones(3), "value")
        line = self.result()
        self.assertIn("nothing was recorded: ", line)
        self.assertNotIn("was not called", line)
        self.assertTrue(line.endswith(REASON), line)

    def test_no_room_for_tensors(self):
        debugger = self.open("L1", "tensor")
        with full_disk(64 << 10):
            debugger.start()
            torch.sigmoid(torch.ones(3))
            torch.sigmoid(torch.ones(1 << 16))
            debugger.stop()
            debugger.step()
        line = self.result()
        self.assertEqual(self.on_disk(), {"step0": 2})
        files = glob.glob(self.dump_path + "/step0/*/dump_tensor_data/*")
        self.assertEqual(sorted(os.path.basename(path) for path in files),
                         ["Torch.sigmoid.0.forward.input.0.pt", "Torch.sigmoid.0.forward.output.0.pt"])
        self.check_result(line, "2 entries", "1 step", "2 files were lost")

    def test_stacks_and_construction(self):
        model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        debugger = self.open("mix")
        debugger.start(model=model)
        model(torch.ones(2, 3))
        with full_disk():
            debugger.stop()
            debugger.step()
        line = self.result()
        self.assertIn("2 files were lost", line)
        self.assertIn("nothing was recorded: ", line)

    def test_another_rank_tells_its_losses(self):
        debugger = self.open("L1")
        self.step(debugger, rank_id=3)
        debugger.step()
        with full_disk():
            self.step(debugger, rank_id=3)
            debugger.step()
        self.check_result(self.result(), "11 entries", "1 step", "step1 could not be started")

    def test_gradients(self):
        debugger = self.open("L1", "grad_probe", {"grad_level": "L1"})
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        debugger.monitor(model)
        for step in range(3):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).sum().backward()
            with full_disk() if step == 1 else contextlib.nullcontext():
                optimizer.step()
        line = self.result()
        tables = glob.glob(self.dump_path + "/rank0/grad_summary_*.csv")
        rows = 0
        for path in tables:
            with open(path, encoding="utf-8") as file:
                rows += len(file.readlines()) - 1
        self.check_result(line, "%d gradients" % rows, "2 steps", "gradients were lost")
        self.assertEqual(rows, 4)

    def test_all_gradients(self):
        debugger = self.open("L1", "grad_probe", {"grad_level": "L0"})
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        debugger.monitor(model)
        with full_disk():
            for _ in range(2):
                optimizer.zero_grad()
                model(torch.ones(2, 3)).sum().backward()
                optimizer.step()
        line = self.result()
        self.assertIn("nothing was recorded: 4 gradients were lost: ", line)
        self.assertTrue(line.endswith(REASON), line)



if __name__ == "__main__":
    unittest.main()
