# SPDX-License-Identifier: Apache-2.0
"""Task acc_check: calls are judged while the training runs, by a process beside it. The training does not notice.
online_trainings_test.py has trainings that take long."""

import csv
import glob
import json
import os
import subprocess
import sys
import unittest

from helpers import *
from msprobe import _native
from msprobe.core import command
from msprobe.core.common.exceptions import MsprobeException
from msprobe.pytorch.online_check import sampling
from trainings import WRONG, OnlineCheck, read_rows, without_own_errors


class WrongKernels(OnlineCheck):
    def check(self, kind, precision, **section):
        plain, _ = self.train(kind, precision, "faulty", 8)
        printed, told = self.train(kind, precision, "faulty", 8, {"budget": None, **section})
        self.assertEqual(printed[:2], plain[:2])
        named = [line.split()[1] for line in told.splitlines() if line.startswith("  error")]
        self.assertEqual(without_own_errors(named, precision, WRONG[kind]), list(WRONG[kind]), told)
        for name, place in WRONG[kind].items():
            self.assertIn("  error    %s in %s, since step 5, right until step 4 (3 of 8 calls)\n" % (name, place), told)
            self.assertEqual(told.count("warning: online pre-check, step 5: %s in %s is wrong: " % (name, place)), 1, told)
        self.assertEqual(told.count("is wrong: "), len(named), told)
        rows = self.results()
        errors = [name for name, row in rows.items() if "error" in row["Forward Verdict"]]
        self.assertEqual(set(without_own_errors(errors, precision, WRONG[kind])), set(WRONG[kind]))
        for name in WRONG[kind]:
            self.assertEqual(rows[name]["Step"], "5")

    def test_llama(self):
        self.check("llama", "float32", compare=True)

    def test_llama_under_automatic_casts(self):
        self.check("llama", "amp")

    def test_vit(self):
        self.check("vit", "float32")

    def test_vit_under_automatic_casts(self):
        self.check("vit", "amp")

    def test_they_are_saved_as_a_dump(self):
        self.train("llama", "float32", "faulty", 8, {"budget": None, "compare": True})
        self.assertEqual(sorted(name for name in os.listdir(self.dump_path) if name.startswith("step")), ["step5", "step6"])
        tree = find_tree(self.dump_path, 5)
        self.assertEqual({name.rpartition(".")[0] for name in tree.names}, set(WRONG["llama"]))
        self.assertEqual({name for names, _ in tree.stack.values() for name in names},
                         {name + ".forward" for name in WRONG["llama"]})
        self.assertEqual(tree.names[:3], [name + ".forward" for name in WRONG["llama"]])
        self.assertIn("online_training.py", tree.stack["0"][1][0])
        case = os.path.join(self.folder, "case")
        status, _, told = command.ask(["op_generate", "-api_info", tree.folder + "/dump.json", "--api", "Functional.silu.1",
                                       "-o", case])
        self.assertEqual(status, 0, told)
        done = subprocess.run([sys.executable, case + "/Functional.silu.1/run.py"], check=False, stdout=subprocess.PIPE,
                              text=True)
        self.assertIn("verdict: pass", done.stdout)  # of the right kernel
        checked = os.path.join(self.folder, "checked")
        status, _, told = command.ask(["acc_check", "-api_info", tree.folder + "/dump.json", "--recorded", "-o", checked,
                                       "--python", sys.executable])
        self.assertIn("0 pass, 3 errors", told.replace("3 error,", "3 errors,"))


class SameVerdicts(OnlineCheck):
    def check(self, kind, precision):
        """As `acc_check --recorded` has them of a dump of the same step."""
        self.train(kind, precision, "faulty", 6, {"budget": None, "compare": True}, step=[5])
        online = self.results()
        self.train(kind, precision, "faulty", 6, {}, task="tensor", step=[5])
        dump, = glob.glob(self.dump_path + "/step5/proc*/dump.json")
        folder = os.path.join(self.folder, "checked" + kind + precision)
        status, _, told = command.ask(["acc_check", "-api_info", dump, "--recorded", "-o", folder, "--python",
                                       sys.executable])
        self.assertEqual(status, 0, told)
        offline = read_rows(glob.glob(folder + "/accuracy_checking_result_*.csv")[0])
        self.assertEqual(sorted(online), sorted(offline))
        for name, row in offline.items():
            found = online[name]
            self.assertEqual(found.pop("Step"), "5")
            self.assertEqual(found, row)

    def test_llama(self):
        self.check("llama", "float32")

    def test_vit_under_automatic_casts(self):
        self.check("vit", "amp")


class TableOfCompare(OnlineCheck):
    def check(self, kind, precision, too_close):
        """The training's side has the cells that `compare` has of a dump of the same step. Of one wrong operation the
        outputs do not differ enough for the rules of `compare`."""
        _, told = self.train(kind, precision, "faulty", 6, {"budget": None, "compare": True}, step=[5])
        rows = self.compared()
        self.assertRegex(told, r"\n  written: \S+/compare_result_[0-9]+\.csv\n")
        self.train(kind, precision, "faulty", 6, {}, task="tensor", step=[5])
        dump, = glob.glob(self.dump_path + "/step5/proc*/dump.json")
        folder = os.path.join(self.folder, "compared" + kind + precision)
        status, _, told = command.ask(["compare", dump, dump, "-o", folder])
        self.assertEqual(status, 0, told)
        with open(glob.glob(folder + "/compare_result_*.csv")[0], encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            others = {row["NPU Name"]: row for row in reader}
        columns = [name for name in reader.fieldnames if name not in ("NPU_Stack_Info", "Error", "Origin", "Evidence")]
        self.assertEqual(list(rows[0]), columns + ["Step"])
        cells = ["NPU Dtype", "NPU Tensor Shape", "NPU max", "NPU min", "NPU mean", "NPU l2norm"]
        for row in rows:
            other = others[row["NPU Name"]]
            self.assertEqual([row[name] for name in cells], [other[name] for name in cells], row["NPU Name"])
        self.assertEqual({row["Bench Name"] for row in rows}, {row["NPU Name"] for row in rows})
        self.assertEqual(len(rows), len({row["NPU Name"] for row in rows}))
        self.assertTrue(any(".backward.output.1" in row["NPU Name"] for row in rows))
        differ = {".".join(row["NPU Name"].split(".")[:3]) for row in rows if row["Result"] != "pass"}
        self.assertEqual(differ, set(WRONG[kind]) - {too_close})

    def test_llama(self):
        self.check("llama", "float32", "Functional.linear.13")

    def test_vit_under_automatic_casts(self):
        self.check("vit", "amp", "Functional.linear.1")

    def test_a_row_for_each_change(self):
        self.train("llama", "float32", "faulty", 8, {"budget": None, "compare": True})
        name = "Functional.softmax.0.forward.output.0"
        rows = [row for row in self.compared() if row["NPU Name"] == name]
        self.assertEqual([(row["Step"], row["Result"]) for row in rows], [("0", "pass"), ("5", "warning")])
        self.assertLess(float(rows[1]["One Thousandth Err Ratio"]), 1)


class Ranks(OnlineCheck):
    def test_each_has_its_results(self):
        script = """
import os, sys
import torch
import torch.distributed as distributed
from msprobe.pytorch import PrecisionDebugger

rank, folder = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method="file://" + folder + "/store", rank=rank, world_size=2)
debugger = PrecisionDebugger(config_path=folder + "/config.json")
torch.manual_seed(rank)  # a sum that is nearly 0 by chance has few correct digits
model = torch.nn.Linear(4, 4)
workers = torch.utils.data.DataLoader(torch.randn(8, 4), batch_size=4, num_workers=1, persistent_workers=True)
for values in workers:
    debugger.start(model)
    loss = model(values).sum()
    distributed.all_reduce(loss.detach())
    loss.backward()
    debugger.stop()
    debugger.step()
"""
        with open(self.folder + "/config.json", "w", encoding="utf-8") as file:
            json.dump({"task": "acc_check", "dump_path": self.folder + "/dump", "risk_level": "ALL",
                       "acc_check": {"budget": None}}, file)
        run_two_ranks(self.folder, script)
        self.assertEqual(sorted(os.listdir(self.folder + "/dump")), ["rank0", "rank1"])
        for rank in range(2):
            rows = read_rows(glob.glob(self.folder + "/dump/rank%d/accuracy_checking_result_*.csv" % rank)[0])
            self.assertEqual({name: (row["Forward Verdict"], row["Backward Verdict"]) for name, row in rows.items()},
                             {"Functional.linear.0": ("pass", "pass"), "Tensor.sum.0": ("pass", "pass"),
                              "Distributed.all_reduce.0": ("skip", "")})
            self.assertEqual(rows["Distributed.all_reduce.0"]["Reason"], "communication is not called again")


class Calls(OnlineCheck):
    def test_in_place_random_and_other_calls(self):
        generator = torch.Generator().manual_seed(1)
        values = torch.randn(4, 6, generator=generator)
        norm = nn.BatchNorm1d(6)
        weight = torch.randn(6, 6, generator=generator).requires_grad_()

        def step():
            hidden = functional.relu(values @ weight, inplace=True)
            hidden = hidden + 1
            hidden.mul_(3)
            hidden += values
            out = torch.empty(4, 6)
            with torch.no_grad():
                torch.add(values, 1, out=out)
            functional.dropout(norm(hidden), 0.5)
            torch.topk(hidden, 2)[0].sum().backward()

        rows = self.judged(step, risk_level="ALL")
        verdicts = {name: (row["Forward Verdict"], row["Backward Verdict"]) for name, row in rows.items()}
        for name in ("Tensor.__matmul__.0", "Functional.relu.0", "Tensor.__add__.0", "Tensor.mul_.0", "Tensor.__iadd__.0",
                     "Torch.topk.0", "Tensor.sum.0"):
            self.assertEqual(verdicts[name], ("pass", "pass"), name)
        self.assertEqual(verdicts["Torch.add.0"], ("pass", ""))
        self.assertEqual(verdicts["Functional.batch_norm.0"], ("pass", ""))  # nothing of it goes into the loss
        self.assertEqual((verdicts["Functional.dropout.0"][0], rows["Functional.dropout.0"]["Reason"]),
                         ("skip", "its result is random"))

    def test_random_numbers_that_no_list_knows(self):
        def step():
            torch.nn.functional.feature_alpha_dropout(torch.ones(2, 3, 4), 0.5, True)

        step.__name__ = "step"
        rows = self.judged(step)
        self.assertEqual({row["Forward Verdict"] for row in rows.values()}, {"skip"})

    def test_a_call_that_raises(self):
        def step():
            with self.assertRaises(RuntimeError):
                functional.linear(torch.ones(2, 3), torch.ones(2, 4))
            functional.linear(torch.ones(2, 3), torch.ones(2, 3))

        rows = self.judged(step, steps=2)
        self.assertEqual({name: row["Forward Verdict"] for name, row in rows.items()}, {"Functional.linear.1": "pass"})

    def test_tensors_of_other_kinds(self):
        def step():
            torch.abs(torch.ones(2, 3).to_sparse())

        rows = self.judged(step)
        self.assertEqual(rows["Torch.abs.0"]["Forward Verdict"], "skip")

    def test_a_backward_that_does_not_come(self):
        weight = torch.ones(3, 3, requires_grad=True)
        rows = self.judged(lambda: functional.linear(torch.ones(2, 3), weight))
        self.assertEqual(rows["Functional.linear.0"]["Forward Verdict"], "pass")
        self.assertEqual(rows["Functional.linear.0"]["Backward Verdict"], "")


class Settings(OnlineCheck):
    def test_lists(self):
        def step():
            torch.exp(torch.ones(3))
            torch.sin(torch.ones(3))

        rows = self.judged(step, section={"white_list": ["sin"]})
        self.assertEqual({name: row["Reason"] for name, row in rows.items()},
                         {"Torch.exp.0": "not on the white list", "Torch.sin.0": ""})
        rows = self.judged(step, section={"black_list": ["sin"]})
        self.assertEqual(rows["Torch.sin.0"]["Reason"], "on the black list")
        with self.assertRaisesRegex(MsprobeException, "white_list: 'sine' is not an operation .*; did you mean 'sin'"):
            self.open("L1", "acc_check", {"white_list": ["sine"]})

    def test_where_nothing_is_judged_that_is_said(self):
        _, told = self.train("vit", "float32", "healthy", 1, {"white_list": ["acos"]})
        self.assertRegex(told, "warning: online pre-check: nothing was judged: [0-9]+ operations skipped, for the reasons in .*result_.*csv\n")
        self.assertNotIn("0 error", told)
        _, told = self.train("vit", "float32", "healthy", 1, {"list": ["acos"]})
        self.assertIn("warning: online pre-check: nothing was judged\n", told)

    def test_invalid_values(self):
        for section, text in (({"budget": 0}, "budget: must be a number above 0"), ({"budget": "a"}, "budget: must be"),
                              ({"interval": 0}, "interval"), ({"compare": "yes"}, "compare: must be true or false"),
                              ({"reference": "gpu"}, 'reference: "gpu" must be one of'),
                              ({"white_list": "sin"}, "white_list: must be a list"), ({"rank_list": "a"}, "rank_list")):
            with self.assertRaisesRegex(MsprobeException, text):
                self.open("L1", "acc_check", section)

    def test_the_level_is_l1(self):
        self.open("mix", "acc_check", {})
        self.assertIn("task acc_check calls operations again: level L1 is used instead of mix",
                      json.loads(_native.setting("warnings")))

    def test_ranks_of_releases_8_x(self):
        self.open("L1", "acc_check", {"rank_list": [3]})
        debugger = PrecisionDebugger
        debugger.start(rank_id=2)
        self.assertFalse(_native.running())
        debugger.stop()

    def test_where_cases_go(self):
        wanted = os.path.join(self.folder, "cases")
        self.train("llama", "float32", "faulty", 6, {"budget": None, "error_data_path": wanted})
        self.assertEqual(os.listdir(wanted), ["step5"])
        self.assertEqual([name for name in os.listdir(self.dump_path) if not name.startswith("proc")], [])


class Sampling(unittest.TestCase):
    def setUp(self):
        self.now = 100.0
        self.real = sampling.time.monotonic
        sampling.time = type("Clock", (), {"monotonic": lambda _: self.now})()

    def tearDown(self):
        import time
        sampling.time = time

    def test_a_share_of_the_time(self):
        budget = sampling.Budget(0.2)
        spent = 0.0
        for _ in range(1000):
            budget.begin_step()
            for _ in range(20):
                self.now += 0.01
                if budget.is_open():
                    self.now += 0.03
                    spent += 0.03
                    budget.spend(0.03)
        self.assertAlmostEqual(spent / (self.now - 100 - spent), 0.2, delta=0.01)

    def test_what_is_left_over_is_for_the_next_step(self):
        budget = sampling.Budget(0.5)
        for _ in range(3):
            budget.begin_step()
            self.now += 10
        budget.begin_step()
        for is_open in (True, False):
            self.now += 4
            budget.spend(4)
            self.assertEqual(budget.is_open(), is_open)

    def test_what_is_judged_later_is_reserved(self):
        budget = sampling.Budget(0.5)
        budget.begin_step()
        budget.release("sin", budget.reserve("sin"), 3)
        self.now += 5
        self.assertTrue(budget.is_open())
        self.assertEqual(budget.reserve("sin"), 3)
        self.assertFalse(budget.is_open())
        budget.begin_step()  # its backward did not come
        self.assertTrue(budget.is_open())

    def test_without_a_limit(self):
        budget = sampling.Budget(None)
        budget.begin_step()
        budget.spend(1000)
        self.assertTrue(budget.is_open())

    def rounds(self, turns, steps, calls, most):
        """The calls of each step that get their turn."""
        told = []
        for _ in range(steps):
            taken = []
            for call in range(calls):
                if turns.is_over(call) or not turns.is_next(call):
                    continue
                if len(taken) == most:
                    turns.leave()
                    continue
                turns.take(call)
                taken.append(call)
            turns.end_step()
            told.append(taken)
        return told

    def test_each_gets_its_turn(self):
        self.assertEqual(self.rounds(sampling.Turns(1), 4, 5, 2), [[0, 1], [2, 3], [4], [0, 1]])
        self.assertEqual(self.rounds(sampling.Turns(1), 2, 3, 5), [[0, 1, 2], [0, 1, 2]])

    def test_every_nth_step(self):
        self.assertEqual(self.rounds(sampling.Turns(3), 4, 5, 9), [[0, 3], [2], [1, 4], [0, 3]])


if __name__ == "__main__":
    unittest.main()
