# SPDX-License-Identifier: Apache-2.0
"""Small trainings beside what the Python tool 26.2 wrote of the same ones (tests/data/golden/monitor/training.json)."""

import pathlib

from monitor_helpers import *
from torch import nn

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "data" / "golden" / "monitor" / "training.json").read_text())
MORE_OPS = OPS + ["id"]


class Twice(nn.Module):
    """Gives a tensor, a scalar and what is no tensor."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.ReLU()

    def forward(self, x, scale=None):
        y = self.act(self.fc(x))
        y = y if scale is None else scale * y
        return y, y.sum(), 3


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5, 4)
        self.layers = nn.ModuleList([Twice(), Twice()])
        self.head = nn.Linear(4, 2)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.unused = nn.Linear(2, 2)

    def forward(self, ids):
        first, second = self.layers
        x = first(self.emb(ids))[0]
        x = second(x, scale=torch.tensor(2.0))[0]
        return self.frozen(self.head(x))


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2)

    def forward(self, x, whole):
        return self.b(self.a(x)) if whole else self.a(x)


def numbers_of(seed, shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Golden(MonitorCase):
    def same(self, case, prefixes, left_out=(), names=None):
        """The rows of the Python tool are there and no others, with their names and, but for the last digit, their values.
        `left_out`: rows that only the Python tool has; `names`: theirs by ours, where those differ."""
        for prefix in prefixes:
            golden = GOLDEN[case][prefix]
            keys = [name for name in ("name", "step", "micro_step", "vpp_stage") if name in golden["columns"]]
            theirs = {}
            for row in golden["rows"]:
                row = dict(zip(golden["columns"], row))
                theirs[tuple(row[key] for key in keys)] = row
            ours = {}
            for row in self.rows(prefix):
                row["name"] = (names or {}).get((prefix, row["name"]), row["name"])
                ours[tuple(row[key] for key in keys)] = row
            missing = {key for key in theirs if key not in ours}
            self.assertEqual(missing, {key for key in theirs if (prefix,) + key[:2] in left_out}, prefix)
            for key, row in ours.items():
                with self.subTest(case=case, prefix=prefix, row=key):
                    self.assertEqual(list(row), golden["columns"])
                    self.alike(row, theirs[key])

    def alike(self, ours, theirs):
        for column, text in theirs.items():
            try:
                expected = float(text)
            except ValueError:
                self.assertEqual(ours[column], text, column)
                continue
            if math.isnan(expected) or math.isinf(expected):
                self.assertEqual(str(float(ours[column] or "nan")), str(expected), column)
            else:
                self.assertTrue(math.isclose(float(ours[column]), expected, rel_tol=1e-5, abs_tol=2e-8),
                                "%s: %s, not %s" % (column, ours[column], text))

    def test_all_quantities_of_a_plain_model(self):
        torch.manual_seed(0)
        net = Words()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        self.monitor(net, optimizer, {"grad_acc_steps": 1}, xy_distribution=True, wg_distribution=True, mv_distribution=True,
                     param_distribution=True, mg_direction=True, ops=MORE_OPS, eps=1e-3, ndigits=8, step_count_per_record=1)
        for step in range(3):
            ids = torch.randint(0, 5, (3, 2), generator=torch.Generator().manual_seed(100 + step))
            optimizer.zero_grad(set_to_none=True)
            (net(ids) ** 2).mean().backward()
            optimizer.step()
        if VERSION >= (2, 0):
            self.same("plain", GOLDEN["plain"])
        else:  # its hooks do not get what is given by name
            by_name = {("actv", "layers.1.input_1", str(step)) for step in range(3)}
            self.same("plain", GOLDEN["plain"], by_name, {("actv", "layers.1.input"): "layers.1.input_0"})

    def test_a_branch_that_is_used_in_even_steps(self):
        torch.manual_seed(15)
        net = Branch()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.monitor(net, optimizer, targets={"a": {}, "b": {}}, xy_distribution=True, wg_distribution=True, ops=["norm"])
        for step in range(3):
            optimizer.zero_grad(set_to_none=True)
            net(torch.full((1, 2), 1.0 + step), step != 1).sum().backward()
            optimizer.step()
        # Nothing arrived in step 1: the Python tool repeats what there was, or writes NaN.
        repeated = {(prefix, "b." + name, "1") for prefix in ("grad_reduced", "grad_unreduced") for name in ("weight", "bias")}
        repeated |= {("actv_grad", "b." + name, "1") for name in ("input", "output")}
        self.same("stale", GOLDEN["stale"], repeated)

    def accumulate(self, **keys):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1, bias=False))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.monitor(net, optimizer, {"grad_acc_steps": 2}, targets={"0": {}, "2": {}}, xy_distribution=True,
                     wg_distribution=True, ops=["norm", "max"], **keys)
        for step in range(6):
            optimizer.zero_grad(set_to_none=True)
            for batch in range(2):
                net(numbers_of(10 * step + batch, (2, 3))).sum().backward()
            net.eval()
            with torch.no_grad():
                net(torch.full((1, 3), 1e6))  # is not recorded
            net.train()
            optimizer.step()

    def test_each_micro_batch(self):
        self.accumulate(monitor_mbs_grad=True)
        self.same("each_micro_batch", GOLDEN["each_micro_batch"])

    def test_a_window_of_steps(self):
        self.accumulate(start_step=1, step_interval=2, collect_times=2)
        self.same("window", GOLDEN["window"])


if __name__ == "__main__":
    unittest.main()
