# SPDX-License-Identifier: Apache-2.0
"""msprobe.record(): as a block, as a decorator, and by the steps of an optimizer."""

import contextlib
import copy
import io
import gc
import json
import pickle
import shutil
import warnings
import weakref

from helpers import *
import msprobe
from msprobe.core import overriding
from msprobe.core.common import log
from msprobe.pytorch.recording import Recording


class Training(Case):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "dump")
        self.net = make_net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)

    def tearDown(self):
        if Recording._current is not None:
            Recording._current.close()
        super().tearDown()

    def train_step(self):
        self.optimizer.zero_grad()
        loss = self.net(make_input()).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def names(self, step=0, path=None):
        return find_tree(path or self.path, step).names

    def written(self, path=None):
        return sorted(os.listdir(path or self.path))


class Record(Training):
    def check_three_steps(self):
        self.assertEqual(self.written(), ["step0", "step1", "step2"])
        for step in range(3):
            names = self.names(step)
            self.assertIn("Module.b1.l1.Linear.forward.0", names)
            self.assertIn("Module.b1.l1.Linear.backward.0", names)
            self.assertIn("Functional.linear.0.forward", names)
            self.assertNotIn("Functional.linear.3.forward", names)

    def test_a_step_each_time_it_is_entered(self):
        recording = msprobe.record(self.net, self.path)
        for _ in range(3):
            with recording as entered:
                self.assertIs(entered, recording)
                self.train_step()
            self.net(make_input())  # is not recorded
        self.check_three_steps()

    def test_step(self):
        with msprobe.record(self.net, self.path) as recording:
            for _ in range(3):
                self.train_step()
                recording.step()
        self.check_three_steps()  # and no empty one after them

    def test_what_follows_the_last_step_is_recorded(self):
        with msprobe.record(self.net, self.path) as recording:
            self.train_step()
            recording.step()
            self.net(make_input())
        self.assertEqual(self.written(), ["step0", "step1"])
        self.assertIn("Module.b1.l1.Linear.forward.0", self.names(1))

    def test_decorator(self):
        train_step = msprobe.record(self.net, self.path)(self.train_step)
        for _ in range(3):
            self.assertEqual(train_step().shape, ())
        self.check_three_steps()

    def test_steps_of_the_optimizer(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
            with msprobe.record(self.net, self.path, optimizer=self.optimizer):
                for _ in range(3):
                    self.train_step()
                    scheduler.step()
                copy.deepcopy(self.optimizer)
                pickle.dumps(self.optimizer)
        self.check_three_steps()
        self.train_step()
        self.assertEqual(self.written(), ["step0", "step1", "step2"])

    def test_the_optimizer_is_as_it_was(self):
        self.assertNotIn("step", self.optimizer.__dict__)
        with msprobe.record(self.net, self.path, optimizer=self.optimizer):
            self.assertIn("step", self.optimizer.__dict__)
        self.assertNotIn("step", self.optimizer.__dict__)
        torch.optim.lr_scheduler.StepLR(self.optimizer, 1)  # may put its own there
        own = self.optimizer.__dict__.get("step")
        with msprobe.record(self.net, os.path.join(self.folder, "other"), optimizer=self.optimizer):
            pass
        self.assertIs(self.optimizer.__dict__.get("step"), own)

    def test_the_training_is_the_same_bit_for_bit(self):
        for _ in range(3):
            self.train_step()
        plain = [one.detach().clone() for one in self.net.parameters()]
        self.net = make_net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        with msprobe.record(self.net, self.path, task="tensor", optimizer=self.optimizer):
            for _ in range(3):
                self.train_step()
        for one, other in zip(plain, self.net.parameters()):
            self.assertTrue(torch.equal(one, other))

    def test_settings(self):
        with msprobe.record(self.net, self.path, task="tensor", level="L0", list=["b2.l1"], data_mode=["forward"],
                            extra_info=False):
            self.train_step()
        self.assertEqual(self.names(), ["Module.b2.l1.Linear.forward.0"])
        folder = find_tree(self.path).folder
        self.assertFalse(os.path.exists(os.path.join(folder, "stack.json")))
        self.assertTrue(os.listdir(os.path.join(folder, "dump_tensor_data")))

    def test_steps_asked_for(self):
        with msprobe.record(self.net, self.path, step=[1], optimizer=self.optimizer):
            for _ in range(3):
                self.train_step()
        self.assertEqual(self.written(), ["step1"])

    def test_steps_with_others_between_them(self):
        with msprobe.record(self.net, self.path, step=[0, 2], optimizer=self.optimizer):
            for _ in range(4):
                self.train_step()
        self.assertEqual(self.written(), ["step0", "step2"])

    def test_steps_without_entries_count(self):
        with msprobe.record(self.net, self.path, list=["sigmoid"], optimizer=self.optimizer):
            self.train_step()
            torch.sigmoid(torch.ones(1))
            self.train_step()
            self.train_step()
        self.assertEqual(self.written(), ["step0", "step1", "step2"])
        self.assertEqual([len(self.names(step)) for step in range(3)], [0, 1, 0])

    def test_a_program_that_goes_to_another_folder(self):
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            recording = msprobe.record(self.net, "dump", optimizer=self.optimizer)
            with recording:
                self.train_step()
                os.chdir(other)
                self.train_step()
            recording.close()
        self.assertEqual((self.written(), os.listdir(other)), (["step0", "step1"], []))
        self.assertEqual(os.fspath(recording), self.path)
        self.assertIn(" of 2 steps to %s in " % self.path, told.getvalue())

    def test_without_a_model(self):
        with msprobe.record(dump_path=self.path):
            self.train_step()
        self.assertIn("Functional.linear.0.forward", self.names())
        self.assertFalse([name for name in self.names() if name.startswith("Module.")])

    def test_two_recordings_take_turns(self):
        """A generator and a discriminator, say: each goes on counting."""
        other = os.path.join(self.folder, "other")
        first, second = msprobe.record(self.net, self.path), msprobe.record(self.net, other)
        for _ in range(2):
            for one in (first, second):
                with one:
                    self.train_step()
        self.assertEqual(self.written(), ["step0", "step1"])
        self.assertEqual(self.written(other), ["step0", "step1"])
        self.assertEqual(self.names(1), self.names(1, other))
        self.assertEqual(os.fspath(first), self.path)

    def test_it_tells_what_was_recorded(self):
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            with msprobe.record(self.net, self.path) as recording:
                for _ in range(3):
                    self.train_step()
                    recording.step()
            recording.close()
        self.assertIn(" of 3 steps to " + self.path, told.getvalue())
        self.assertNotIn("warning", told.getvalue())

    def test_ranks(self):
        script = """
import os, sys
import torch
import torch.distributed as dist
import msprobe
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "meet"), rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with msprobe.record(model, os.path.join(folder, "dump"), optimizer=optimizer):
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(2, 4) + rank).sum().backward()
        optimizer.step()
dist.barrier()
"""
        run_two_ranks(self.folder, script)
        self.assertEqual(self.written(), ["step0", "step1"])
        for step in range(2):
            self.assertEqual(self.written(os.path.join(self.path, "step%d" % step)), ["rank0", "rank1"])
            self.assertIn("Module.module.Linear.forward.0", find_tree(self.path, step, 1).names)

    def test_an_exception_passes(self):
        with self.assertRaises(KeyError):
            with msprobe.record(self.net, self.path):
                self.net(make_input())
                raise KeyError("of the training")
        self.assertIn("Module.b1.l1.Linear.forward.0", self.names())
        with msprobe.record(self.net, os.path.join(self.folder, "other")):
            self.train_step()

    def test_it_raises_nothing_into_the_training(self):
        blocked = os.path.join(self.folder, "file")
        with open(blocked, "w", encoding="utf-8") as file:
            file.write("no folder")
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            with msprobe.record(self.net, os.path.join(blocked, "dump"), optimizer=self.optimizer) as recording:
                self.train_step()
                recording.step()
            recording.close()
        self.assertIn("is not a directory", told.getvalue())

    def test_wrong_settings(self):
        for keys in ({"level": "L9"}, {"task": "grad_probe"}, {"step": 3}, {"list": "b1"}, {"optimizer": 3},
                     {"summary_mode": {1, 2}}):
            with self.assertRaises((msprobe.MsprobeException, TypeError), msg=keys):
                with msprobe.record(self.net, self.path, **keys):
                    self.fail("entered with %s" % keys)
        with self.assertRaises(msprobe.MsprobeException):
            with msprobe.record(self.net, self.path, summary_mode="other"):
                self.fail("entered")
        with self.assertRaises(TypeError):
            msprobe.record(self.net, self.path, colour="red")
        with self.assertRaises(msprobe.MsprobeException):
            msprobe.record("a model", self.path)
        with self.assertRaises(msprobe.MsprobeException):
            msprobe.record(None, self.path, level="mix")
        with self.assertRaises(msprobe.MsprobeException) as raised:
            msprobe.record(self.net)
        self.assertIn("dump_path is missing", str(raised.exception))
        self.assertFalse(os.path.exists(self.path))

    def test_one_at_a_time(self):
        debugger = self.open("L1")
        told = io.StringIO()
        with contextlib.redirect_stderr(told), msprobe.record(self.net, self.path):
            self.train_step()
        self.assertEqual(told.getvalue(), "msprobe: warning: record: nothing is recorded to %s, as a PrecisionDebugger "
                                          "records already in this process\n" % self.path)
        self.assertIs(PrecisionDebugger._instance, debugger)
        self.assertFalse(os.path.exists(self.path))

    def test_one_inside_another(self):
        other = os.path.join(self.folder, "other")
        told = io.StringIO()
        with msprobe.record(self.net, self.path, optimizer=self.optimizer), contextlib.redirect_stderr(told):
            for _ in range(2):
                with msprobe.record(self.net, other, optimizer=self.optimizer) as inner:
                    self.train_step()
                    inner.step()
            self.train_step()
        lines = [line for line in told.getvalue().splitlines() if "warning" in line]
        self.assertEqual(lines, ["msprobe: warning: record: nothing is recorded to %s, as another recording records already "
                                 "in this process" % other])
        self.assertFalse(os.path.exists(other))
        self.check_three_steps()
        with msprobe.record(self.net, other):
            self.train_step()
        self.assertEqual(self.written(other), ["step0"])

    def test_one_inside_another_of_the_same_folder(self):
        told = io.StringIO()
        recording = msprobe.record(self.net, self.path)
        with contextlib.redirect_stderr(told), recording:
            for inner in (recording, msprobe.record(self.net, self.path)):
                with inner:
                    self.net(make_input())
            self.net(make_input())
        self.assertNotIn("warning", told.getvalue())
        self.assertEqual(self.written(), ["step0"])
        self.assertIn("Module.b1.l1.Linear.forward.2", self.names())

    def test_one_inside_another_with_an_optimizer_of_its_own(self):
        """The outer one says where steps end."""
        line = "record: the step() of this optimizer ends no step: the recording to %s that is still running defines where steps end"
        other = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for outer, inner, lines in ((None, self.optimizer, 1), (self.optimizer, other, 1), (self.optimizer, self.optimizer, 0),
                                    (self.optimizer, None, 0)):
            log._said.clear()
            told = io.StringIO()
            folder = os.path.join(self.folder, "outer%d" % len(os.listdir(self.folder)))
            with contextlib.redirect_stderr(told), msprobe.record(self.net, folder, optimizer=outer):
                with msprobe.record(self.net, folder, optimizer=inner):
                    self.train_step()
                    self.train_step()
            self.assertEqual([text for text in told.getvalue().splitlines() if "warning" in text],
                             ["msprobe: warning: " + line % folder] * lines)
            self.assertEqual(self.written(folder), ["step0"] if outer is None else ["step0", "step1"])

    def test_it_keeps_nothing_alive(self):
        for task in ("statistics", "tensor"):
            net = make_net()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            with msprobe.record(net, os.path.join(self.folder, task), task=task, optimizer=optimizer) as recording:
                for _ in range(2):
                    net(make_input()).sum().backward()
                    optimizer.step()
            kept = [weakref.ref(one) for one in (net, optimizer, *net.parameters())]
            del net, optimizer
            gc.collect()
            self.assertEqual([one() for one in kept if one() is not None], [])
            recording.close()

    def test_a_recording_for_each_step(self):
        for _ in range(3):
            with msprobe.record(self.net, self.path):
                self.train_step()
        self.check_three_steps()
        shutil.rmtree(self.path)
        with msprobe.record(self.net, self.path, optimizer=self.optimizer):
            self.train_step()
        self.assertEqual(self.written(), ["step0"])

    def test_a_rerun(self):
        """Without ranks each process has separate folders."""
        script = """
import sys
import torch
import msprobe
model = torch.nn.Sequential(torch.nn.Linear(4, 4))
for step in range(2):
    with msprobe.record(model, sys.argv[1]):
        model(torch.ones(2, 4))
"""
        self.assertNotIn("warning", run_script(script, self.folder, self.path).stderr)
        told = run_script(script, self.folder, self.path).stderr
        self.assertIn("%s/step0 holds proc" % self.path, told)
        self.assertEqual([len(self.written(os.path.join(self.path, step))) for step in self.written()], [2, 2])

    def test_a_rerun_of_ranks(self):
        script = """
import os, sys
import torch
import torch.distributed as dist
import msprobe
rank, folder, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "meet%d" % size), rank=rank, world_size=2)
sys.stderr = sys.stdout
model = torch.nn.Sequential(torch.nn.Linear(size, 4))
for step in range(size):
    with msprobe.record(model, os.path.join(folder, "dump")):
        model(torch.ones(2, size))
dist.barrier()
"""
        self.assertNotIn("warning", "".join(run_two_ranks(self.folder, script, 3)))
        told = run_two_ranks(self.folder, script, 2)
        self.assertEqual([[line for line in one.splitlines() if "warning" in line] for one in told], [
            ["msprobe: warning: %s holds step0, step1, step2 of an earlier run: those that are recorded now are replaced" %
             self.path], []])
        self.assertEqual(self.written(), ["step0", "step1", "step2"])
        for step, size in enumerate([2, 2, 3]):
            for rank in range(2):
                taken = find_tree(self.path, step, rank).data["Module.0.Linear.forward.0"]["input_args"][0]
                self.assertEqual(taken["shape"], [2, size])


class Overriding(Training):
    """Settings that replace those of a script."""

    def test_of_a_recording(self):
        with overriding.replaced({"dump_path": self.path, "task": "tensor", "step": [1], "list": ["b2.l1"]}):
            with msprobe.record(self.net, "/nowhere", list=["b1"], optimizer=self.optimizer) as recording:
                for _ in range(3):
                    self.train_step()
            recording.close()
        self.assertEqual(self.written(), ["step1"])
        self.assertIn("Module.b2.l1.Linear.forward.0", self.names(1))
        self.assertNotIn("Module.b1.l1.Linear.forward.0", self.names(1))
        self.assertEqual(recording.dump_path, self.path)

    def test_of_a_debugger_by_the_environment(self):
        for given in ("file", "arguments"):
            config = os.path.join(self.folder, "config.json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump({"task": "tensor", "dump_path": "/nowhere", "level": "L0", "dump_enable": False, "step": [5],
                           "statistics": {"summary_mode": "md5"}}, file)
            made = {"file": "config_path=%r" % config,
                    "arguments": "task='tensor', dump_path='/nowhere', level='L0', step=[7]"}[given]
            script = """
import torch
from msprobe.pytorch import PrecisionDebugger
net = torch.nn.Sequential(torch.nn.Linear(2, 2))
debugger = PrecisionDebugger(%s)
debugger.set_init_step(5)
for _ in range(3):
    debugger.start(net); net(torch.ones(1, 2)); debugger.stop(); debugger.step()
""" % made
            path = os.path.join(self.folder, given)
            os.environ[overriding.VARIABLE] = json.dumps({"dump_path": path, "task": "statistics", "step": [0, 1]})
            try:
                run_script(script, self.folder)
            finally:
                del os.environ[overriding.VARIABLE]
            self.assertEqual(self.written(path), ["step0", "step1"])
            tree = find_tree(path, 1)
            self.assertEqual(tree.names, ["Module.0.Linear.forward.0"])
            self.assertEqual(tree.dump["task"], "statistics")
            self.assertEqual("md5" in json.dumps(tree.dump), given == "file")

    def test_what_is_not_understood_has_no_effect(self):
        self.addCleanup(os.environ.pop, overriding.VARIABLE)
        for text in ("no JSON", "[1]", '{"colour": "red"}'):
            os.environ[overriding.VARIABLE] = text
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(overriding.wanted(), {})


if __name__ == "__main__":
    unittest.main()
