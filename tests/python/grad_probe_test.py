# SPDX-License-Identifier: Apache-2.0
"""Task grad_probe: tables of gradients and their signs, as the Python tool 8.1 wrote them."""

import csv
import gc
import weakref
import zlib

from helpers import *
from msprobe.core.common.exceptions import MsprobeException

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/golden/monitor/grad_probe")
LISTED = ["0.weight", "0.bias", "1.weight"]


def table(folder, step):
    with open(os.path.join(folder, "rank0", "grad_summary_%d.csv" % step), "rb") as file:
        data = file.read()
    assert data.startswith(b"\xef\xbb\xbf") and data.count(b"\n") == data.count(b"\r\n")
    return list(csv.reader(data.decode("utf-8-sig").splitlines()))


def signs(folder, step, parameter):
    with open(os.path.join(folder, "rank0", "step%d" % step, parameter + ".npy"), "rb") as file:
        return file.read()


def files_in(folder):
    return sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, names in os.walk(folder) for name in names)


class GradProbe(Case):
    def probe(self, section, **keys):
        return self.open("L1", "grad_probe", section, **keys)

    def train(self, debugger, model, steps=3, kind=torch.optim.SGD, **options):
        optimizer = kind(model.parameters(), lr=0.1, **options)
        debugger.monitor(model)
        for step in range(steps):
            optimizer.zero_grad()
            generator = torch.Generator().manual_seed(step)
            model(torch.randn(4, 3, generator=generator)).pow(2).sum().backward()
            optimizer.step()
        return optimizer

    def golden_run(self, section, seed=0):
        """The training behind the golden files."""
        torch.manual_seed(41)
        model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2), nn.Linear(2, 1))
        debugger = self.probe(dict(section, param_list=LISTED, bounds=[-0.1, 0, 0.5]), step=[0, 2])
        self.train(debugger, model)

    def check_golden(self, name, section):
        self.golden_run(section)
        expected = os.path.join(GOLDEN, name)
        self.assertEqual(files_in(self.dump_path), files_in(expected))
        for step in (0, 2):
            got, wanted = table(self.dump_path, step), table(expected, step)
            self.assertEqual(got[0], wanted[0])
            numbers = [at for at, column in enumerate(got[0]) if column not in ("param_name", "MD5", "shape")]
            for row, known in zip(got[1:], wanted[1:]):
                self.assertEqual((row[0], row[-1]), (known[0], known[-1]))
                for at in numbers:
                    self.assertAlmostEqual(float(row[at]), float(known[at]), delta=1e-5 * max(1, abs(float(known[at]))))
            for parameter in LISTED if name != "L0" else []:
                self.assertEqual(signs(self.dump_path, step, parameter), signs(expected, step, parameter))

    def test_level_l0(self):
        self.check_golden("L0", {"grad_level": "L0"})

    def test_level_l1(self):
        self.check_golden("L1_a", {})

    def test_level_l2(self):
        self.check_golden("L2", {"grad_level": "L2"})

    def test_checksum_and_numbers(self):
        model = nn.Linear(3, 2, bias=False)
        debugger = self.probe({"grad_level": "L0"})
        optimizer = torch.optim.Adam(model.parameters())
        debugger.monitor(model)
        model.weight.grad = torch.tensor([[1.5, -2.0, 0.0], [float("inf"), 0.25, 3.0]])
        optimizer.step()
        wanted = ["weight", "%08x" % zlib.crc32(model.weight.grad.numpy().tobytes()), "inf", "-2.0", "inf", "[2, 3]"]
        self.assertEqual(table(self.dump_path, 0)[1], wanted)

    def test_shares_have_no_nan(self):
        model = nn.Linear(4, 1, bias=False)
        debugger = self.probe({"grad_level": "L2", "bounds": [0]})
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        debugger.monitor(model)
        model.weight.grad = torch.tensor([[float("nan"), 0.0, 2.0, -1.0]])
        optimizer.step()
        rows = table(self.dump_path, 0)
        self.assertEqual(rows[0][:4], ["param_name", "(-inf, 0]", "(0, inf)", "=0"])
        self.assertEqual(rows[1][:7], ["weight", "0.5", "0.25", "0.25", "nan", "nan", "nan"])

    def test_main_grad_counts(self):
        model = nn.Linear(2, 1, bias=False)
        model.weight.main_grad = torch.tensor([[4.0, -3.0]])
        model.weight.grad = torch.zeros(1, 2)
        debugger = self.probe({})
        debugger.monitor(model)
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        self.assertEqual(table(self.dump_path, 0)[1][1:4], ["4.0", "-3.0", "5.0"])

    def test_a_step_within_a_step_counts_once(self):
        class Twice(torch.optim.SGD):
            def step(self, closure=None):
                return super().step(closure)

        model = nn.Linear(3, 2)
        debugger = self.probe({})
        self.train(debugger, model, kind=Twice)
        self.assertEqual([os.path.exists(os.path.join(self.dump_path, "rank0/grad_summary_%d.csv" % step))
                          for step in range(4)], [True, True, True, False])

    def test_the_training_is_the_same(self):
        def losses(recorded):
            torch.manual_seed(7)
            model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
            if recorded:
                debugger = self.probe({"grad_level": "L2"})
                self.train(debugger, model, 20)
            else:
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                for step in range(20):
                    optimizer.zero_grad()
                    generator = torch.Generator().manual_seed(step)
                    model(torch.randn(4, 3, generator=generator)).pow(2).sum().backward()
                    optimizer.step()
            return [parameter.tolist() for parameter in model.parameters()]

        self.assertEqual(losses(False), losses(True))

    def test_what_cannot_be_written_is_no_error_of_the_training(self):
        model = nn.Linear(3, 2)
        debugger = self.probe({})
        with open(os.path.join(self.dump_path, "rank0"), "w", encoding="utf-8") as file:
            file.write("no folder")
        self.train(debugger, model)
        self.assertEqual(os.listdir(self.dump_path), ["rank0"])

    def test_an_optimizer_outlives_the_task(self):
        model = nn.Linear(3, 2)
        optimizer = self.train(self.probe({}), model, steps=1)
        self.assertTrue(os.path.exists(os.path.join(self.dump_path, "rank0", "grad_summary_0.csv")))
        parameter = weakref.ref(model.weight)
        PrecisionDebugger._instance._end()
        debugger = self.open("L1")
        for _ in range(3):
            debugger.start(model)
            model(torch.ones(1, 3)).sum().backward()
            debugger.stop()
            optimizer.step()
            debugger.step()
        self.assertEqual(self.steps(), ["step0", "step1", "step2"])
        self.close()
        del model, optimizer, debugger
        gc.collect()
        self.assertIsNone(parameter())

    def test_wrong_configurations(self):
        for section, text in (({"grad_level": "L3"}, "grad_level"), ({"bounds": [1, 0]}, "bounds: must be in ascending order"),
                              ({"bounds": []}, "bounds"), ({"bounds": [1e30]}, "64-bit"), ({"param_list": "w"}, "param_list"),
                              ({"param_list": [1]}, "param_list")):
            with self.assertRaises(MsprobeException) as caught:
                self.probe(section)
            self.assertIn(text, str(caught.exception))

    def test_other_tasks_have_no_monitor(self):
        debugger = self.open("L1", "statistics", {})
        debugger.monitor(nn.Linear(2, 2))
        debugger = self.probe({})
        with self.assertRaises(MsprobeException):
            debugger.monitor("model")


if __name__ == "__main__":
    unittest.main()
