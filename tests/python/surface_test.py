# SPDX-License-Identifier: Apache-2.0
"""debugger.config and debugger.service, a folder for each stage, steps that begin anew, a second debugger in one process."""

import contextlib
import glob

from helpers import *
from msprobe.core.common import log


@contextlib.contextmanager
def told():
    """The lines that are printed meanwhile."""
    lines = []
    written = log._write
    log._said.clear()
    log._write = lambda kind, text: lines.append(kind + text)
    try:
        yield lines
    finally:
        log._write = written


class Surface(Case):
    def record(self, debugger, count=1, **keys):
        debugger.start(**keys)
        for _ in range(count):
            torch.sigmoid(torch.ones(1))
        debugger.stop()

    def names(self, *path, step=0):
        return find_tree(os.path.join(self.dump_path, *path), step).names

    def test_what_is_read(self):
        debugger = self.open("mix", step=[1, "3-4"], section={"summary_mode": "md5"})
        config, service = debugger.config, debugger.service
        self.assertEqual((config.task, config.level, config.dump_path), ("statistics", "mix", self.dump_path))
        self.assertEqual((config.step, config.rank, config.summary_mode, config.list), ([1, 3, 4], [], "md5", []))
        self.assertEqual((config.framework, config.data_mode, config.extra_info), ("pytorch", ["all"], True))
        self.assertFalse(hasattr(config, "nonsense"))
        self.assertFalse(hasattr(service, "nonsense"))
        self.assertIn("dump_path", dir(config))
        self.assertEqual((service.current_iter, service.loop, service.init_step), (0, 0, 0))
        self.assertEqual((service.first_start, service.should_stop_service, service.current_rank), (True, False, None))
        debugger.set_init_step(3)
        debugger.start(model=make_net(), rank_id=2)
        self.assertEqual((service.current_iter, service.loop, service.init_step), (3, 0, 3))
        self.assertEqual((service.first_start, service.current_rank, service.current_pid), (False, 2, os.getpid()))
        debugger.stop()
        debugger.step()
        self.assertEqual((service.current_iter, service.loop), (3, 1))
        debugger.step()
        debugger.start(model=make_net())
        self.assertEqual((service.should_stop_service, service.loop), (True, 2))

    def test_a_folder_for_each_stage(self):
        debugger = self.open("L1")
        for stage, count in (("a", 1), ("b", 2), ("a", 1)):
            debugger.service.config.dump_path = os.path.join(debugger.config.dump_path, stage)
            self.record(debugger, count)
        debugger.step()
        self.record(debugger)
        # Numbers go on from stage to stage; a stage that comes again goes on where it was.
        self.assertEqual(self.names("a"), ["Torch.sigmoid.0.forward", "Torch.sigmoid.3.forward"])
        self.assertEqual(self.names("b"), ["Torch.sigmoid.1.forward", "Torch.sigmoid.2.forward"])
        self.assertEqual(self.names("a", step=1), ["Torch.sigmoid.0.forward"])
        tree = find_tree(os.path.join(self.dump_path, "a"))
        stacked = [name for names, _ in tree.stack.values() for name in names]
        self.assertEqual(sorted(stacked), sorted(tree.names))
        with told() as lines:
            debugger._end()
        self.assertIn("recorded 5 entries of 3 steps to 2 folders in " + self.dump_path, lines[-1])

    def test_files_lie_in_the_folder_of_their_stage(self):
        debugger = self.open("L1", task="tensor")
        kept = torch.ones(3)
        for stage in "ab":
            debugger.service.config.dump_path = os.path.join(self.dump_path, stage)
            debugger.start()
            torch.sigmoid(kept)
            debugger.stop()
        debugger.step()
        for number, stage in enumerate("ab"):
            folder = find_tree(os.path.join(self.dump_path, stage)).folder
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "dump_tensor_data"))), [
                "Torch.sigmoid.%d.forward.input.0.pt" % number, "Torch.sigmoid.%d.forward.output.0.pt" % number])

    def test_a_gradient_lies_where_is_recorded_when_it_comes(self):
        debugger = self.open("L1")
        x = torch.ones(3, requires_grad=True)
        debugger.start()
        y = torch.sigmoid(x)
        debugger.stop()
        debugger.service.config.dump_path = os.path.join(self.dump_path, "later")
        debugger.start()
        torch.relu(torch.ones(1))
        y.sum().backward()
        debugger.stop()
        self.assertIn("Torch.sigmoid.0.backward", self.names("later"))
        self.assertEqual(self.names(), ["Torch.sigmoid.0.forward"])

    def test_saved_values_follow(self):
        debugger = self.open("debug")
        debugger.save(torch.ones(1), "x")
        debugger.service.config.dump_path = os.path.join(self.dump_path, "b")
        debugger.save(torch.ones(1), "x")
        debugger.step()
        with open(os.path.join(find_tree(os.path.join(self.dump_path, "b")).folder, "debug.json"), encoding="utf-8") as file:
            self.assertIn('"x.1.debug"', file.read())

    def test_a_program_that_goes_to_another_folder(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        debugger = self.open("L1", dump_path="dump", dump_enable=True)
        here, other = os.path.join(self.folder, "dump"), os.path.join(self.folder, "other")
        os.mkdir(other)
        for path in (None, "./b", "dump"):
            if path is not None:
                debugger.service.config.dump_path = path
            os.chdir(other)
            self.record(debugger)
            debugger.step()
            self.write_config(dict(self.config, extra_info=False))  # is read again
            self.record(debugger)
            debugger.step()
            os.chdir(self.folder)
        self.assertEqual(sorted(os.listdir(here)), ["step0", "step1", "step4", "step5"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "b"))), ["step2", "step3"])
        self.assertEqual(os.listdir(other), [])

    def test_a_reference_of_a_program_that_goes_to_another_folder(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        for place, section in (("golden", {}), ("dump", {"bench_path": "golden"})):
            debugger = self.open("L1", "tensor", dict(section, summary_mode="md5"), dump_path=place, dump_enable=True)
            os.chdir(other)
            for _ in range(2):
                self.record(debugger)
                debugger.step()
                self.write_config(dict(self.config, extra_info=False))  # is read again
            os.chdir(self.folder)
        self.assertEqual(sorted(os.listdir("dump")), ["step0", "step1"])
        self.assertEqual(os.listdir(other), [])
        files = glob.glob("dump/step*/*/dump_tensor_data/*")
        self.assertEqual(files, [])  # all is as in the reference

    def test_a_wrong_folder(self):
        debugger = self.open("L1")
        for wrong in (3, None, ""):
            with self.assertRaises(TypeError):
                debugger.service.config.dump_path = wrong
        self.record(debugger)
        self.assertEqual(self.names(), ["Torch.sigmoid.0.forward"])

    def test_numbers_begin_anew(self):
        debugger = self.open("L1")
        debugger.step()
        for stage, reset in (("a", "reset_status"), ("b", "_reset_status")):
            debugger.service.config.dump_path = os.path.join(self.dump_path, stage)
            self.record(debugger)
            getattr(debugger.service, reset)()
            self.assertEqual(self.names(stage, step=1), ["Torch.sigmoid.0.forward"])
        with told() as lines:
            self.record(debugger, 2)
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], "^warning: after reset_status.. step 1 is recorded into .*/b again, replacing")
        self.assertEqual(self.names("b", step=1), ["Torch.sigmoid.0.forward", "Torch.sigmoid.1.forward"])

    def test_what_is_written_in_vain_is_told_once(self):
        debugger = self.open("L1")
        with told() as lines:
            for _ in range(2):
                debugger.config.level = "L0"
                debugger.service.config.level = "L0"
                debugger.service.config.level = "L1"  # as it is
                debugger.service.current_iter = 4
                debugger.service.first_start = True
        self.assertEqual(lines, [
            "warning: debugger.config.level = 'L0' has no effect",
            "warning: debugger.service.config.level = 'L0' has no effect",
            "warning: debugger.service.current_iter = 4 has no effect"])
        self.assertEqual((debugger.service.config.level, debugger.service.current_iter), ("L1", 0))

    def test_a_program_keeps_the_folder_in_config(self):
        debugger = self.open("L1")
        kept = os.path.join(self.dump_path, "kept")
        with told() as lines:
            debugger.config.dump_path = kept
            debugger.service.config.dump_path = kept
            self.record(debugger)
            self.assertEqual((debugger.config.dump_path, [line for line in lines if "warning" in line]), (kept, []))
            debugger.config.dump_path = "elsewhere"
            self.record(debugger)
            self.record(debugger)
        self.assertEqual(lines[1:], ["warning: debugger.config.dump_path = 'elsewhere' has no effect: write "
                                     "debugger.service.config.dump_path",
                                     "warning: start() was called again without step(): the calls that follow belong to step 0, too; call step() where a step ends"])
        self.assertEqual(len(self.names("kept")), 3)

    def test_a_second_debugger(self):
        first = self.open("mix")
        net = make_net()
        first.start(model=net)
        y = net(make_input())
        first.stop()
        PrecisionDebugger._instance = None
        with told() as lines:
            second = PrecisionDebugger(config_path=self.config_path, dump_path=os.path.join(self.dump_path, "second"))
        self.assertIsNot(second, first)
        self.assertIn("dump.json is at %s/step0" % self.dump_path, lines[0])
        self.assertIn("recorded", lines[1])
        second.start(model=net)
        y.sum().backward()  # of what the first one recorded
        net(make_input())
        second.stop()
        self.assertIn("Module.b1.l1.Linear.forward.0", self.names("second"))
        self.assertEqual(find_tree(os.path.join(self.dump_path, "second")).errors, "")

    def test_reading_the_configuration_at_once(self):
        debugger = self.open("L1", dump_enable=False)
        self.write_config(dict(self.config, dump_enable=True, level="debug"))
        debugger._maybe_reload_config(force=True)
        self.assertEqual((debugger.config.level, debugger.config.dump_enable), ("debug", True))

    def test_a_folder_stays_chosen_when_the_configuration_is_read_again(self):
        debugger = self.open("L1", dump_enable=True)
        debugger.service.config.dump_path = os.path.join(self.dump_path, "a")
        self.record(debugger)
        debugger.step()
        self.write_config(dict(self.config, extra_info=False))
        self.record(debugger)
        self.assertIsNone(find_tree(os.path.join(self.dump_path, "a"), 1).stack)

    def test_tokens_are_counted_from_each_start(self):
        debugger = self.open("L0")
        net = make_net()
        for _ in range(2):
            debugger.start(model=net, token_range=[0, 0])
            net(make_input())
            net(make_input())
            debugger.stop()
            debugger.step()
        debugger.start(model=net)
        net(make_input())
        net(make_input())
        debugger.stop()
        counts = [sum("l1.Linear.forward" in name for name in self.names(step=step)) for step in range(3)]
        self.assertEqual(counts, [2, 2, 4])


if __name__ == "__main__":
    unittest.main()
