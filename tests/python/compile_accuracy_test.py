# SPDX-License-Identifier: Apache-2.0
"""PrecisionChecker: modules that torch.compile made against the modules themselves."""

import contextlib
import copy
import csv
import io
import tempfile

from helpers import *
from msprobe.pytorch.compile_accuracy_checker.precision_checker import PrecisionChecker


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(self.linear(x).relu()))


def make_model():
    torch.manual_seed(1)
    return nn.Sequential(Layer(), Layer(), nn.Linear(8, 2))


def train(model):
    torch.manual_seed(2)
    loss = model(torch.randn(16, 8)).square().mean()
    loss.backward()
    return loss


def wrong(factor):
    """A backend whose results are off."""
    def compile_graph(graph, inputs):
        return lambda *args: tuple(one * factor if one.is_floating_point() else one for one in graph(*args))
    return compile_graph


@unittest.skipIf(VERSION < (2, 1), "torch.compile")
class Checker(unittest.TestCase):
    def check(self, model, **keys):
        checker = PrecisionChecker(**dict({"backend": "aot_eager"}, **keys))
        checker.wrap_by_policy(model, (Layer,))
        checker.install(model)
        return checker

    def test_what_is_right(self):
        model, plain = make_model(), make_model()
        checker = self.check(model)
        loss = train(model)
        result = checker.collect(loss)
        self.assertTrue(result.all_pass)
        self.assertEqual([diff.name for diff in result.diffs], ["0", "1"])
        self.assertEqual(len(result.diffs[1].grad_input), 1)
        # The training is what it was: buffers, random numbers, gradients.
        self.assertTrue(torch.allclose(loss, train(plain)))
        for one, other in zip(model.state_dict().values(), plain.state_dict().values()):
            self.assertTrue(torch.allclose(one, other))
        for one, other in zip(model.parameters(), plain.parameters()):
            self.assertTrue(torch.allclose(one.grad, other.grad))
        self.assertEqual(checker.collect().diffs, [])

    def test_what_is_wrong(self):
        model = make_model()
        checker = self.check(model, backend=wrong(1.1))
        result = checker.collect(train(model))
        self.assertFalse(result.all_pass)
        self.assertFalse(result.diffs[0].fwd_output[0].allclose)
        self.assertGreater(result.diffs[0].fwd_output[0].max_rel, 0.05)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as told:
            path = os.path.join(folder, "new", "p.csv")
            checker.report(result, csv_path=path)
            with open(path, encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file))
        self.assertIn("  RESULT: 2 of 2 modules FAIL  (atol=1e-4 rtol=1e-3)", told.getvalue().splitlines())
        self.assertEqual(rows[0][:4], ["module_name", "check_type", "tensor_index", "status"])
        self.assertEqual([row[:4] for row in rows[1:4]], [["LOSS", "loss", "0", "PASS"], ["0", "fwd_output", "0", "FAIL"],
                                                         ["1", "fwd_output", "0", "FAIL"]])

    def test_compare_changes_no_model(self):
        model = make_model()
        before = copy.deepcopy(model.state_dict())
        checker = PrecisionChecker(single_pass=False)
        checker.wrap_all_children(model)
        checker.ignore_by_policy(model, (nn.Linear,))
        result = checker.compare(lambda one: train(one) * 1.0, model)
        self.assertTrue(result.all_pass)
        self.assertEqual([diff.name for diff in result.diffs], ["0", "1"])
        self.assertLess(result.loss_diff, 1e-5)
        for one, other in zip(model.state_dict().values(), before.values()):
            self.assertTrue(torch.equal(one, other))

    def test_a_wider_type_and_graphs(self):
        model = make_model()
        with tempfile.TemporaryDirectory() as folder:
            checker = self.check(model, cast_dtype=torch.float64, dump_graphs=True, graph_dir=folder)
            result = checker.collect(train(model))
            self.assertTrue(os.path.getsize(os.path.join(folder, "graph_0.txt")) > 0)
        self.assertTrue(result.all_pass)
        self.assertGreater(max(diff.fwd_output[0].max_abs for diff in result.diffs), 0.0)


class Old(unittest.TestCase):
    @unittest.skipIf(VERSION >= (2, 0), "there is torch.compile")
    def test_it_says_what_it_needs(self):
        with self.assertRaisesRegex(NotImplementedError, "needs torch.compile"):
            PrecisionChecker()


if __name__ == "__main__":
    unittest.main()
