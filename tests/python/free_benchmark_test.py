# SPDX-License-Identifier: Apache-2.0
"""Task free_benchmark: calls made again with perturbed inputs. The training does not notice."""

import csv
import glob
import math
import warnings

from helpers import *
import torch.utils.checkpoint
from msprobe.core.common.exceptions import MsprobeException
from msprobe.pytorch import free_benchmark
from msprobe.pytorch.free_benchmark import consistency, perturbing, preheat

COLUMNS = ["rank", "pert_mode", "stage", "step", "api_name", "max_rel", "dtype", "shape", "output_index"]
FORWARD_MODES = ("improve_precision", "add_noise", "bit_noise", "change_value", "no_change", "to_cpu")


class FreeBenchmark(Case):
    def begin(self, mode, **section):
        section = dict(section, pert_mode=mode)
        section.setdefault("fuzz_device", "cpu" if mode == "to_cpu" else "npu")
        keys = {key: section.pop(key) for key in ("risk_level", "level", "step") if key in section}
        return self.open(keys.pop("level", "L1"), "free_benchmark", section, **keys)

    def rows(self, step=0):
        files = glob.glob(self.dump_path + "/step%d/proc*/free_benchmark.csv" % step)
        if not files:
            return None
        self.assertEqual(os.listdir(os.path.dirname(files[0])), ["free_benchmark.csv"])
        with open(files[0], "rb") as file:
            data = file.read()
        self.assertTrue(data.startswith(b"\xef\xbb\xbf"))
        self.assertEqual(data.count(b"\n"), data.count(b"\r\n"))
        rows = list(csv.reader(data.decode("utf-8-sig").splitlines()))
        self.assertEqual(rows[0], COLUMNS)
        return [dict(zip(COLUMNS, row)) for row in rows[1:]]

    def run_steps(self, debugger, function, steps=1, inputs=lambda step: (step,)):
        results = []
        for step in range(steps):
            made = inputs(step)
            debugger.start()
            results.append(function(*made))
            debugger.stop()
            debugger.step()
        return results

    def found(self, mode, function, **section):
        """{API: (max_rel, dtype, shape, index)} of one step."""
        debugger = self.begin(mode, **section)
        self.run_steps(debugger, lambda step: function())
        return {row["api_name"]: (row["max_rel"], row["dtype"], row["shape"], row["output_index"])
                for row in self.rows() or []}


# ---------------------------------------------------------------------- the Python tool's cases


def golden_inputs(step):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(4, 8, generator=generator).requires_grad_(True)
    return x, (torch.randn(8, 8, generator=generator) * 3).to(torch.bfloat16).requires_grad_(True)


def golden_step(x, w):
    """The tests below hold the results of the Python tool 8.1.1 for this program."""
    a = torch.exp(x * 4)
    b = torch.matmul(x.to(torch.bfloat16), w)
    c = torch.sum(b.float() - b.float().mean())
    e = torch.round(x * 1e3)
    loss = a.mean() + c + functional.relu(e).sum() * 1e-3 + torch.topk(x, 2)[0].sum()
    loss.backward()
    return loss.item()


class Golden(FreeBenchmark):
    def golden(self, mode, **section):
        debugger = self.begin(mode, risk_level="ALL", **section)
        losses = self.run_steps(debugger, golden_step, 3, golden_inputs)
        self.assertEqual(losses, [golden_step(*golden_inputs(step)) for step in range(3)])
        return {row["api_name"]: row["max_rel"] for row in self.rows()}

    def close_to(self, text, expected, tolerance=1e-6):
        self.assertLess(abs(float(text) - expected), tolerance * (1 + expected))

    def test_bit_noise(self):
        found = self.golden("bit_noise")
        self.assertEqual(list(found), ["Torch.matmul.0.forward", "Tensor.float.0.forward", "Tensor.float.1.forward"])
        self.close_to(found["Tensor.float.0.forward"], 0.007812503754394129)
        self.assertGreater(float(found["Torch.matmul.0.forward"]), 0.1)  # its bits are those of the PyTorch at hand

    def test_change_value(self):
        found = self.golden("change_value")
        self.assertEqual(list(found), [
            "Tensor.__mul__.0.forward", "Torch.exp.0.forward", "Tensor.to.0.forward", "Torch.matmul.0.forward",
            "Tensor.float.0.forward", "Tensor.float.1.forward", "Tensor.__sub__.0.forward", "Tensor.__mul__.1.forward",
            "Torch.round.0.forward"])
        self.close_to(found["Tensor.__mul__.0.forward"], 0.33444454749175856)
        self.close_to(found["Torch.exp.0.forward"], 2.091487407684326)
        self.close_to(found["Tensor.to.0.forward"], 0.3359375, 2.0 ** -8)  # there the ratio is bfloat16, too
        self.close_to(found["Torch.round.0.forward"], 0.33412325382232666)
        self.assertEqual(found["Torch.matmul.0.forward"], "symbol_flipping")
        self.assertEqual(found["Tensor.__sub__.0.forward"], "symbol_flipping")

    def test_to_cpu(self):
        self.assertEqual(self.golden("to_cpu"), {"Torch.matmul.0.forward": ""})

    def test_nothing_is_found(self):
        self.assertEqual(self.golden("no_change"), {})
        self.assertEqual(self.golden("add_noise"), {})

    def test_inputs_of_several_calls_are_no_false_alarm(self):
        # The Python tool compares with sums of gradients here: ratios of 1,000 and 200,000.
        self.assertEqual(self.golden("add_noise", fuzz_stage="backward"), {})
        if VERSION >= (2, 0):  # before that products of bfloat16 are rounded more than once
            self.assertEqual(self.golden("improve_precision", fuzz_stage="backward"), {})


# ---------------------------------------------------------------------- the training does not notice


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.3)
        self.words = nn.Embedding(10, 32, max_norm=1.0)
        self.recurrent = nn.LSTM(8, 6, batch_first=True, num_layers=2, dropout=0.2)
        self.last = nn.Linear(6, 3)

    def forward(self, x, words):
        x = self.drop(self.act(self.norm(self.first(x))))
        x = x.view(-1, 4, 8) + self.words(words).view(-1, 4, 8)
        x += 0.5
        x = torch.utils.checkpoint.checkpoint(self.part, x)
        out = torch.empty_like(x[:, 0])
        with torch.no_grad():
            torch.add(x[:, 0], 1.0, out=out)
        return self.last(x[:, -1]) + out.mean()

    def part(self, x):
        x, _ = self.recurrent(functional.dropout(x, 0.1, self.training))
        return functional.gelu(x) * torch.bernoulli(torch.full_like(x, 0.9))


def train(debugger=None, steps=2, autocast=False):
    """Losses, and all that training leaves behind."""
    torch.manual_seed(11)
    model = Trained()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        x, words = torch.randn(4, 2, 8), torch.randint(0, 10, (4,))
        if debugger is not None:
            debugger.start(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                loss = functional.cross_entropy(model(x, words).float(), words % 3)
            loss.backward()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, list(model.state_dict().values()) + [torch.get_rng_state()]


class Unchanged(FreeBenchmark):
    def check(self, expected, mode, **section):
        autocast = section.pop("autocast", False)
        debugger = self.begin(mode, risk_level="ALL", **section)
        losses, left = train(debugger, autocast=autocast)
        self.assertEqual(losses, expected[0], (mode, section))
        for one, other in zip(left, expected[1]):
            self.assertTrue(torch.equal(one, other), (mode, section))
        self.assertIsNotNone(self.rows())
        for log in glob.glob(self.dump_path + "/step*/proc*/dump_error_info.log"):
            with open(log, encoding="utf-8") as file:
                self.fail(file.read())
        return self.rows()

    def test_every_mode(self):
        expected = train()
        for mode in FORWARD_MODES:
            if mode == "improve_precision":
                continue  # below, where there is something to improve
            for stage in "forward", "backward":
                rows = self.check(expected, mode, fuzz_stage=stage)
                if mode == "no_change":
                    self.assertEqual(rows, [], "a call made again gives other numbers: random ones?")

    def test_autocast(self):
        try:
            expected = train(autocast=True)
        except RuntimeError as error:
            if "LSTM" not in str(error):
                raise
            self.skipTest("this PyTorch has no LSTM in bfloat16 for this processor: %s" % error)
        for mode in "improve_precision", "no_change", "bit_noise":
            for stage in "forward", "backward":
                rows = self.check(expected, mode, fuzz_stage=stage, autocast=True)
                if mode == "no_change":
                    self.assertEqual(rows, [])

    def test_hooks_of_others_see_one_call(self):
        packed = []

        def pack(tensor):
            packed.append(tensor.shape)
            return tensor

        def run():
            del packed[:]
            x = torch.ones(3, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                y = torch.exp(x) * x
            y.sum().backward()
            return len(packed)

        expected = run()
        debugger = self.begin("bit_noise", risk_level="ALL")
        self.assertEqual(self.run_steps(debugger, lambda step: run()), [expected])

    def test_steps_that_are_not_asked_for(self):
        debugger = self.begin("change_value", step=[1])
        self.run_steps(debugger, lambda step: torch.exp(torch.arange(3.0)), 3)
        self.assertIsNone(self.rows(0))
        self.assertEqual([row["step"] for row in self.rows(1)], ["1"])
        self.assertIsNone(self.rows(2))


# ---------------------------------------------------------------------- what is found, and what is left out


class Found(FreeBenchmark):
    def test_backward_that_cancels(self):
        def step():
            x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
            torch.softmax(x, 0).backward(torch.tensor([1e6, 1e6 + 0.0625, 1e6 - 0.0625]))
        found = self.found("bit_noise", step, fuzz_stage="backward")
        self.assertEqual(list(found), ["Torch.softmax.0.backward"])
        self.assertGreater(float(found["Torch.softmax.0.backward"][0]), 1)
        self.assertEqual(found["Torch.softmax.0.backward"][1:], ("torch.float32", "torch.Size([3])", ""))

    def test_one_of_several_results(self):
        x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
        self.assertEqual(self.found("change_value", lambda: torch.split(x, 2, dim=1)), {
            "Torch.split.0.forward": ("3.0", "torch.float32", "torch.Size([1, 2])", "1")})

    def test_list_and_scope(self):
        def step():
            x = torch.tensor([1.0, 2.0])
            torch.exp(x)
            torch.sqrt(x)
        self.assertEqual(list(self.found("change_value", step, list=["sqrt"])), ["Torch.sqrt.0.forward"])
        scope = ["Torch.sqrt.0.forward", "Torch.sqrt.0.forward"]
        self.assertEqual(list(self.found("change_value", step, scope=scope)), ["Torch.sqrt.0.forward"])

    def test_calls_that_are_made_once(self):
        def step():
            x = torch.tensor([1.0, 2.0, 3.0])
            torch.exp(x, out=torch.empty(3))
            x.clone().exp_()
            y = x.clone()
            y += 1
            torch.empty_like(x)
            x.contiguous()
            y[0] = 3.0
            torch.exp(x)
        self.assertEqual(list(self.found("change_value", step, risk_level="ALL")), ["Torch.exp.1.forward"])

    def test_a_function_that_changes_its_argument_is_learnt(self):
        free_benchmark.task._changing.discard("relu")
        x = torch.tensor([1.0, 2.0, 3.0])
        results = []

        def step():
            for _ in range(2):
                y = x.clone()
                functional.relu(y, True)
                results.append(y.tolist())
        found = self.found("change_value", step, list=["relu"])
        self.assertEqual(list(found), ["Functional.relu.1.forward"])
        self.assertEqual(results, [[1.0, 2.0, 3.0]] * 2)

    def test_what_is_raised_stays_away(self):
        calls = []
        original = torch.erf

        def fragile(tensor):
            calls.append(tensor.tolist())
            if len(calls) == 2:
                raise ValueError("not again")
            return original(tensor)
        torch.erf = fragile
        try:
            debugger = self.begin("change_value")
            results = self.run_steps(debugger, lambda step: torch.erf(torch.tensor([0.0, 1.0])).tolist())
        finally:
            self.close()
            torch.erf = original
        self.assertEqual(results[0][0], 0.0)
        if len(calls) == 2:
            log, = glob.glob(self.dump_path + "/step0/proc*/dump_error_info.log")
            with open(log, encoding="utf-8") as file:
                self.assertIn("ValueError: not again", file.read())

    def test_what_the_function_raises_arrives(self):
        debugger = self.begin("change_value")
        debugger.start()
        with self.assertRaises(RuntimeError):
            torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
        debugger.stop()

    def test_fix(self):
        x = torch.full((1, 300), 1.0, dtype=torch.bfloat16)
        x[0, 0] = 256.0
        debugger = self.begin("improve_precision", handler_type="fix")
        weight = torch.ones(300, dtype=torch.bfloat16, requires_grad=True)

        def step(_):
            y = torch.cumsum(x[0] * weight, 0)
            y[-1].backward()
            return y[-1].item(), y.dtype, weight.grad[1].item()
        (value, dtype, gradient), = self.run_steps(debugger, step)
        self.assertEqual(value, torch.tensor(555.0).to(torch.bfloat16).item())
        self.assertEqual((dtype, gradient), (torch.bfloat16, 1.0))
        self.assertEqual(self.rows(), [])

    def test_level(self):
        debugger = self.begin("change_value", level="L0")
        self.run_steps(debugger, lambda step: torch.exp(torch.arange(3.0)))
        self.assertEqual(len(self.rows()), 1)

    def test_wrong_settings(self):
        for section, words in (
                ({"pert_mode": "bogus"}, "pert_mode: \"bogus\" must be one of improve_precision, add_noise"),
                ({"pert_mode": "to_cpu", "fuzz_device": "npu"}, "fuzz_device: must be \"cpu\""),
                ({"pert_mode": "add_noise", "fuzz_device": "cpu"}, "fuzz_device: \"cpu\" is for pert_mode \"to_cpu\""),
                ({"pert_mode": "add_noise", "handler_type": "fix"}, "handler_type: \"fix\" is for pert_mode")):
            with self.assertRaises(MsprobeException) as caught:
                self.open("L1", "free_benchmark", section)
            self.assertIn(words, str(caught.exception))


# ---------------------------------------------------------------------- parts


class Parts(unittest.TestCase):
    def test_perturbations(self):
        x = torch.tensor([[1.0, -2.0], [1e-5, 3.0]])
        for dtype, noise in ((torch.float32, 1e-8), (torch.bfloat16, 1e-4), (torch.float16, 1e-6),
                             (torch.float64, 1e-16)):
            plain = x.to(dtype)
            noisy, = perturbing.perturbed("add_noise", [plain])
            wanted = plain + torch.where(plain.abs() > noise ** 0.5, noise, 0.0).to(dtype)
            self.assertTrue(torch.equal(noisy, wanted))
            flipped, = perturbing.perturbed("bit_noise", [plain])
            steps = (flipped.double() - plain.double()).abs()
            unit = torch.finfo(dtype).eps
            self.assertEqual(steps[0].tolist(), [unit, 2 * unit])
        exchanged, = perturbing.perturbed("change_value", [x.t()])
        self.assertEqual(exchanged.tolist(), [[3.0, x[1, 0].item()], [-2.0, 1.0]])
        self.assertEqual(x.tolist()[0], [1.0, -2.0])
        odd = torch.tensor([float("inf"), float("nan"), 0.0, 1e-40])
        flipped, = perturbing.perturbed("bit_noise", [odd])
        self.assertTrue(torch.equal(torch.nan_to_num(flipped, nan=7.0), torch.nan_to_num(odd, nan=7.0)))
        self.assertIsNone(perturbing.perturbed("improve_precision", [x, torch.tensor(1)]))
        self.assertIsNone(perturbing.perturbed("bit_noise", [torch.tensor([1, 2]), 3.0]))
        first, second = perturbing.perturbed("add_noise", [x, x])
        self.assertIs(first, second)

    def test_ratio(self):
        def ratio(one, other, floor=1e-4):
            return consistency.ratio(torch.tensor(one), torch.tensor(other), floor)
        nan, inf = float("nan"), float("inf")
        self.assertAlmostEqual(ratio([1.0, 2.0, 4.0], [1.0, 2.5, 4.0]), 1.25, places=6)
        self.assertAlmostEqual(ratio([1.0, 2.5], [1.0, 2.0]), 1.25, places=6)
        self.assertEqual(ratio([1e-5, 1.0], [-1e-5, 1.0]), 1.0)   # below the floor
        self.assertEqual(ratio([1e-3, 1.0], [-1e-3, 1.0]), consistency.FLIPPED)
        self.assertEqual(ratio([nan, inf, 1.0], [nan, inf, 1.0]), 1.0)
        self.assertEqual(ratio([nan, 1.0], [2.0, 1.0]), inf)
        self.assertEqual(ratio([inf, 1.0], [2.0, 1.0]), inf)
        self.assertEqual(ratio([2.0, 1.0], [inf, 1.0]), inf)
        self.assertEqual(ratio([inf], [-inf]), consistency.FLIPPED)
        self.assertEqual(consistency.ratio(torch.empty(0), torch.empty(0), 1e-4), 1.0)

    def test_large_tensors_are_looked_at_whole(self):
        one = torch.ones(10)
        other = one.clone()
        other[1] = 2.0  # not in the last piece
        before = consistency._PIECE
        consistency._PIECE = 4
        try:
            self.assertEqual(consistency.ratio(one, other, 1e-4), 2.0)
            self.assertFalse(consistency.agrees_with_host(one, other))
        finally:
            consistency._PIECE = before

    def test_agreement_with_the_host(self):
        agrees = consistency.agrees_with_host
        one = torch.tensor([1.0, 0.5])
        self.assertTrue(agrees(one, one + 2.0 ** -14))
        self.assertFalse(agrees(one, one + 2.0 ** -13))
        self.assertFalse(agrees(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0]) + 1.5e-4))  # the mean
        self.assertTrue(agrees(torch.tensor([1e6]), torch.tensor([1e6 + 10])))  # relative above 1
        self.assertTrue(agrees(torch.tensor([5.0]), torch.tensor([float("inf")])))
        self.assertFalse(agrees(torch.tensor([float("nan")]), torch.tensor([5.0])))
        half = torch.zeros(1000)
        half[0] = 2.0 ** -8
        self.assertTrue(agrees(torch.zeros(1000, dtype=torch.bfloat16), half))
        self.assertFalse(agrees(torch.zeros(1000, dtype=torch.float16), half))

    def test_preheat(self):
        heat = preheat.Preheat(4, 2)
        self.assertEqual([heat.wants("a", number) for number in range(10)], [False] * 10)
        heat.end_step()
        sampled = []
        for ratio, agrees in ((1.5, True), (9.0, True), (1.4, False)):
            chosen = [number for number in range(10) if heat.wants("a", number)]
            sampled += chosen
            for _ in chosen:
                heat.add("a", ratio, agrees)
            self.assertFalse(heat.is_over())
            heat.end_step()
        self.assertTrue(heat.is_over())
        self.assertEqual(sampled, [0, 1, 2, 3, 4, 5])  # ceil(10 / 4), but no more than 2 a step
        # 2.05 -> halved, 1.525 -> doubled, 2.05 -> falls to what was wrong
        self.assertEqual(heat.limit("a", 1.0002), 1.4)
        self.assertEqual(heat.limit("b", 1.0002), 1.0002)
        self.assertTrue(math.isclose(_limit_after([(1.5, True)]), 1.525))
        self.assertTrue(math.isclose(_limit_after([(1.5, True), (9.0, True)]), 2.05))


def _limit_after(steps):
    heat = preheat.Preheat(len(steps) + 1, 1)
    heat.wants("a", 0)
    heat.end_step()
    for ratio, agrees in steps:
        heat.add("a", ratio, agrees)
        heat.end_step()
    return heat.limit("a", 1.0)


if __name__ == "__main__":
    unittest.main()
