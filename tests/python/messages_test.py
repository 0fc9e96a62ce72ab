# SPDX-License-Identifier: Apache-2.0
"""Messages to the person who trains: keys without effect, ranks and steps that match nothing, and the result."""

import shutil

from helpers import *
import msprobe
from msprobe.core import session
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException


class Messages(Case):
    def setUp(self):
        super().setUp()
        self.folder = os.path.realpath(self.folder)
        self.addCleanup(setattr, log, "_write", log._write)

    def lines(self, config=None, steps=2, start=None, arguments=None, called=None):
        """The lines of a training, without those on its beginning and on the places of its steps."""
        self.close()
        session._rank[0] = None
        told = []
        log._said.clear()
        log._write = lambda kind, text: told.append((kind + text).replace(self.folder + os.sep, ""))
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            if config is not None:
                self.config_path = os.path.join(self.folder, "c.json")
                self.write_config(dict({"dump_path": os.path.join(self.folder, "dump")}, **config))
                arguments = {"config_path": self.config_path}
            debugger = PrecisionDebugger(**arguments)
            for _ in range(steps):
                debugger.start(**start or {})
                torch.relu(torch.ones(3)) + 1
                if called is not None:
                    called(torch.ones(2, 8))
                debugger.stop()
                debugger.step()
            debugger._end()
        finally:
            os.chdir(here)
        self.places = [line for line in told if line.startswith("dump.json is at ")]
        return [line for line in told if not line.startswith("recording ") and line not in self.places]

    def check_result(self, line, text):
        """All but the seconds."""
        self.assertRegex(line, r" in \d+\.\d s$")
        self.assertEqual(line.rsplit(" in ", 1)[0], text)

    def test_result(self):
        lines = self.lines({})
        self.assertEqual(len(lines), 1, lines)
        self.check_result(lines[0], "recorded 4 entries of 2 steps to dump")
        self.assertEqual(self.places, ["dump.json is at dump/step0", "dump.json is at dump/step1"])
        names = [len(find_tree(os.path.join(self.folder, "dump"), step).names) for step in (0, 1)]
        self.assertEqual(names, [2, 2])

    def told_by(self, work):
        """All lines of work()."""
        self.close()
        log._said.clear()
        told = []
        log._write = lambda kind, text: told.append((kind + text).replace(self.folder + os.sep, ""))
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            work()
        finally:
            os.chdir(here)
        return told

    def test_where_it_is_recorded_to_is_said_at_the_start(self):
        def work():
            debugger = PrecisionDebugger()
            debugger.start(nn.Linear(2, 2))
            debugger.stop()
            debugger.step()
            PrecisionDebugger.close()

        self.assertEqual(self.told_by(work)[0], "recording statistics at level L1 to dump_path, as no dump_path was given")
        self.assertEqual(self.told_by(lambda: (PrecisionDebugger(dump_path="named").start(), PrecisionDebugger.close()))[0],
                         "recording statistics at level L1 to named")

    def test_a_step_that_is_missing(self):
        """All of the training would be one step: that is said once. A part of a step may be left out with start() and stop()."""
        def train(ends_steps):
            debugger = PrecisionDebugger(dump_path="dump")
            for _ in range(4):
                debugger.start()
                torch.relu(torch.ones(3))
                debugger.stop()
                if ends_steps:
                    debugger.step()
            PrecisionDebugger.close()

        line = "warning: start() was called again without step(): the calls that follow belong to step 0, too; call step() where a step ends"
        self.assertEqual([told for told in self.told_by(lambda: train(False)) if "start()" in told], [line])
        self.assertEqual([told for told in self.told_by(lambda: train(True)) if "start()" in told], [])

        def record():
            recording = msprobe.record(dump_path="recorded")
            with recording:
                torch.relu(torch.ones(3))
                recording.stop()
                recording.start()
            recording.close()

        self.assertEqual([told for told in self.told_by(record) if "start()" in told], [])

    def test_result_when_all_steps_are_over(self):
        lines = self.lines({"step": [1]}, 4)
        self.assertEqual(self.places, ["dump.json is at dump/step1"])
        self.assertEqual(len(lines), 1, lines)
        self.check_result(lines[0], "all requested steps are over: recorded 2 entries of 1 step to dump")

    def test_default_configuration(self):
        self.check_result(self.lines(arguments={})[-1], "recorded 4 entries of 2 steps to dump_path")
        lines = self.lines(steps=1, arguments={"task": "tensor", "dump_path": "elsewhere"})
        self.check_result(lines[-1], "recorded 2 entries of 1 step to elsewhere")

    def test_nothing_was_recorded(self):
        for config, steps, text in (({}, 0, "start() was not called"),
                                    ({"level": "debug"}, 2, "save() was not called (level debug records only what it saves)"),
                                    ({"step": [7]}, 3, 'step 7 did not occur: the last one was 2: name earlier ones in "step"')):
            self.assertEqual(self.lines(config, steps), ["nothing was recorded: " + text])
            self.assertEqual(self.places, [])

    def test_a_place_that_cannot_be_written_to(self):
        path = os.path.join(self.folder, "file")
        with open(path, "w", encoding="utf-8"):
            pass
        self.assertEqual(self.lines(arguments={"dump_path": path}), [
            "warning: recording fails: file: is not a directory",
            "nothing was recorded: dump_path must be a folder that can be written to: file: is not a directory"])

    def test_a_reference_that_is_missing(self):
        section = {"summary_mode": "md5", "bench_path": os.path.join(self.folder, "missing")}
        with self.assertRaisesRegex(MsprobeException, "c.json: bench_path: .*/missing is not a folder$"):
            self.lines({"task": "tensor", "tensor": section})
        os.mkdir(section["bench_path"])
        reason = "bench_path: missing/step0: must contain exactly one folder proc<number>"
        self.assertEqual(self.lines({"task": "tensor", "tensor": section}, 1), [
            "warning: recording fails: " + reason, "nothing was recorded: " + reason])

    def test_ranks_that_match_nothing(self):
        unknown = ("rank [0] is requested, but the rank of this process is unknown: pass it to start(rank_id=...) "
                   "or initialise the communication")
        self.assertEqual(self.lines({"rank": [0]}), ["warning: " + unknown, "nothing was recorded: " + unknown])
        self.check_result(self.lines({"rank": [0]}, start={"rank_id": 0})[0], "recorded 4 entries of 2 steps to dump")
        self.assertEqual(self.lines({"rank": ["0", "2-3"]}, start={"rank_id": 1}), [])
        self.assertEqual(self.lines({}, start={"rank_id": 1}), [])
        self.assertEqual(self.places, [])  # rank 0 says it for all
        counting = PrecisionDebugger._count_processes
        PrecisionDebugger._count_processes = lambda self: 2
        try:
            lines = self.lines({"rank": [2]}, start={"rank_id": 0})
        finally:
            PrecisionDebugger._count_processes = counting
        self.assertEqual(lines, ["warning: rank [2] is requested, but there are 2 processes: nothing is recorded",
                                 "nothing was recorded: rank 0 is not one of those requested",
                                 'warning: rank 2 is requested, but there are 2 processes: name 0 to 1 in "rank"'])

    def test_keys_without_effect(self):
        lines = self.lines({"levl": "L0", "tensor": {"file_format": "npy"},
                            "statistics": {"sumary_mode": "md5", "file_format": "npy"}}, 1)
        self.check_result(lines.pop(3), "recorded 2 entries of 1 step to dump")
        self.assertEqual(lines, [
            'warning: c.json: "levl" is not a key and has no effect: did you mean "level"?',
            'warning: c.json: statistics: "sumary_mode" is not a key and has no effect: did you mean "summary_mode"?',
            'warning: c.json: statistics: "file_format" has no effect: it is for level L2 of MindSpore; tensors '
            "are saved as .pt by PyTorch's front end and as .npy by MindSpore's"])

    def test_keys_of_the_online_mode_of_8_x_get_one_line(self):
        section = {"online_run_ut": False, "nfs_path": "", "host": "", "port": -1, "tls_path": "./"}
        quiet = self.lines({"statistics": section}, 1)
        self.assertEqual(len(quiet), 1, quiet)
        self.check_result(quiet[0], "recorded 2 entries of 1 step to dump")
        shutil.rmtree(os.path.join(self.folder, "dump"))
        lines = self.lines({"statistics": dict(section, online_run_ut=True)}, 1)
        self.assertEqual(lines[0], (
            'warning: c.json: statistics: "online_run_ut, nfs_path, host, port, tls_path" has no effect: it is '
            "task acc_check that judges operations of a running training, or sends them to another host"))
        self.assertEqual(len(lines), 2, lines)

    def test_a_key_without_effect_gets_one_line(self):
        for config, line in (
                ({"summary_mode": "md5"}, '"summary_mode" has no effect here: it belongs in the section "statistics"'),
                ({"lode": {}}, '"lode" is not a key and has no effect: did you mean "load"?'),
                ({"tensor": {"list": ["relu"]}}, 'tensor: "list" has no effect: the task is statistics, whose section is '
                 '"statistics"')):
            lines = self.lines(config)
            self.assertEqual(lines[0], "warning: c.json: " + line)
            self.check_result(lines[1], "recorded 4 entries of 2 steps to dump")
            self.assertEqual(len(lines), 2, lines)
            shutil.rmtree(os.path.join(self.folder, "dump"))

    def test_the_last_line_says_what_was_asked_for_in_vain(self):
        model = {"model": make_net()}
        backward = {"statistics": {"data_mode": ["backward"]}}
        scope = {"scope": ["Torch.relu.0.forward", "Torch.relu.9.forward"]}
        for config, start, line in (
                ({"step": [0, 7, "9-20"]}, {}, "steps 7, 9, 10 and 10 more did not occur: the last one was 1: name earlier ones "
                 'in "step"'),
                ({"statistics": {"list": ["relu", "lienar"]}}, {},
                 'list: no call has the name "lienar"; there were "Tensor.__add__.0.forward", "Torch.relu.0.forward"'),
                ({"statistics": {"list": ["rleu"]}}, {}, "0 entries: no call has a name that list selects"),
                ({"statistics": {"tensor_list": ["relu.1"]}}, {},
                 'tensor_list: no call has the name "relu.1": did you mean "relu"?'),
                ({"statistics": scope}, {},
                 'scope: no call has the name "Torch.relu.9.forward": did you mean "Torch.relu.0.forward"?'),
                ({"level": "L0"}, model, "0 entries: no module of the model was called between start() and stop(): "
                 "give start() the model that is called, or record operations (level L1 or mix)"),
                (backward, {}, "0 entries: data_mode selects backwards only, but none ran before step()")):
            lines = self.lines(config, start=start)
            self.assertEqual(lines[-1], "warning: " + line, config)
        lines = self.lines({"statistics": {"list": ["rleu"]}})
        self.assertEqual(lines[-2], 'warning: list: no call has the name "rleu": did you mean "relu"?')

    def test_names_of_operations_at_the_level_of_modules(self):
        net = make_net()
        lines = self.lines({"level": "L0", "statistics": {"list": ["torch.relu"]}}, start={"model": net}, called=net)
        self.assertIn('list: no call has the name "torch.relu"; there were "Module.', lines[-2])
        self.assertEqual(lines[-1], "warning: 0 entries: no call has a name that list selects; operations are recorded at "
                                    "level L1 or mix")
        lines = self.lines({"level": "L0", "statistics": {"list": ["b7.l1"]}}, start={"model": net}, called=net)
        self.assertIn('list: no call has the name "b7.l1": did you mean "b', lines[-2])

    def test_the_level_of_messages(self):
        self.addCleanup(os.environ.pop, "MSPROBE_LOG_LEVEL", None)
        for level, count in (("0", 2), ("1", 2), ("x", 2), ("2", 1), ("3", 0), ("4", 0)):
            os.environ["MSPROBE_LOG_LEVEL"] = level
            lines = self.lines({"lode": {}}, 1)
            self.assertEqual(len([line for line in lines if "lode" in line][-1:] + [
                line for line in lines if line.startswith("recorded")]), count, level)

    def test_steps_that_nobody_counts(self):
        self.close()
        debugger = self.open("L1", step=[1])
        told = []
        written, log._write = log._write, lambda kind, text: told.append(kind + text)
        try:
            for _ in range(3):
                debugger.start()
                torch.relu(torch.ones(3))
                debugger.stop()
            debugger._end()
        finally:
            log._write = written
        self.assertEqual(told, ["nothing was recorded: step 1 did not occur: the last one was 0, as step() was not called"])

    def test_corrections_are_told(self):
        lines = self.lines({"task": "structure"}, 1, {"model": nn.Identity()})
        self.assertIn("level mix is used instead of L1", lines[0])

    def test_a_structure_has_no_entries_to_count(self):
        lines = self.lines({"task": "structure", "level": "mix"}, start={"model": nn.Identity()})
        self.check_result(lines[-1], "recorded the structure of 2 steps to dump")

    def test_an_earlier_run_in_the_same_folder(self):
        rank = {"rank_id": 0}
        self.lines({}, 4, rank)
        self.assertEqual(self.lines({"step": [1, 2, 7]}, 4, rank)[0],
                         "warning: dump holds step1, step2 of an earlier run: those that are recorded now are replaced")
        self.assertEqual(len(self.lines({"step": [7]}, 8, rank)), 1)
        self.assertEqual(len(self.lines({"step": [1]}, 2, {"rank_id": 1})), 0, "rank 0 tells")

    def test_another_run_in_the_same_folder(self):
        dump = os.path.join(self.folder, "dump")
        os.makedirs(os.path.join(dump, "step1", "proc1"))
        lines = self.lines({})
        self.check_result(lines[0], "recorded 4 entries of 2 steps to dump")
        self.assertEqual(lines[1:], ["warning: dump/step1 holds proc1 of another process, too: give each run a separate "
                                     "dump_path, or name the folder of one process to `msprobe compare`"])
        self.assertEqual(len(self.lines({}, start={"rank_id": 0})), 1, "ranks tell processes apart")

    def test_it_is_told_at_the_end_of_the_process(self):
        script = """
import sys, torch
from msprobe.pytorch import PrecisionDebugger
PrecisionDebugger(dump_path=sys.argv[1]).start()
torch.relu(torch.ones(3))
"""
        lines = run_script(script, self.folder, os.path.join(self.folder, "dump")).stderr.splitlines()
        self.assertEqual(lines[-2].replace(self.folder + os.sep, ""), "msprobe: dump.json is at dump/step0")
        self.check_result(lines[-1].replace(self.folder + os.sep, ""), "msprobe: recorded 1 entry of 1 step to dump")


if __name__ == "__main__":
    unittest.main()
