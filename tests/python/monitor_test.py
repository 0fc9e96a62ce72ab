# SPDX-License-Identifier: Apache-2.0
"""The training monitor on a plain model: what is measured, when, under which name; and that training stays as it was."""

import contextlib
import io

from monitor_helpers import *
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.relu(self.fc(x))
        return y, y.sum(), 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5, 4)
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 2)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.unused = nn.Linear(2, 2)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)[0]
        return self.frozen(self.head(x))


ENDS_AT_ONCE = """
import glob, os, sys, torch
from msprobe.pytorch import TrainerMon
net = torch.nn.Linear(3, 3)
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for _ in range(int(sys.argv[2]))]
TrainerMon(sys.argv[1]).set_monitor(net, optimizers)
folder = os.environ["MONITOR_OUTPUT_DIR"]
for step in range(20):
    net(torch.ones(1, 3)).sum().backward()
    optimizers[0].step()
    if len(optimizers) == 1:
        (path,) = glob.glob(folder + "/*/param_updated_*.csv")
        with open(path) as file:
            assert len(file.read().split("\\n")) == 2 + 2 * (step + 1)
if len(optimizers) == 1:
    os._exit(0)
"""


def make(optimizer=torch.optim.Adam, **keys):
    torch.manual_seed(0)
    net = Net()
    return net, optimizer(net.parameters(), **dict({"lr": 1e-2}, **keys))


def train(net, optimizer, steps, micro_batches=1, seen=None):
    """The losses. seen(step): called before each step of the optimizer."""
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        for micro in range(micro_batches):
            ids = torch.randint(0, 5, (3, 2), generator=torch.Generator().manual_seed(100 * step + micro))
            loss = (net(ids) ** 2).mean()
            loss.backward()
            losses.append(loss.item())
        if seen is not None:
            seen(step)
        optimizer.step()
    return losses


STATES = """
import sys, torch
from msprobe.pytorch import TrainerMon

class Stateless(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter -= group["lr"] * parameter.grad

net = torch.nn.Linear(3, 3)
kind = Stateless if sys.argv[2] == "Stateless" else getattr(torch.optim, sys.argv[2])
optimizer = kind(net.parameters(), lr=0.1)
TrainerMon(sys.argv[1]).set_monitor(net, optimizer)
for step in range(int(sys.argv[3])):
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
"""


class Plain(MonitorCase):
    def test_an_optimizer_without_state_is_said_once_it_has_stepped(self):
        # Adam gets its state in the first step.
        for optimizer, steps, count in (("Adam", 3, 0), ("Stateless", 1, 0), ("Stateless", 3, 1)):
            path = self.configure(mv_distribution=True, ops=["norm"])
            result = run_script(STATES, self.folder, path, optimizer, steps)
            said = (result.stdout + result.stderr).count("the optimizer has no state of weight")
            self.assertEqual(said, count, (optimizer, steps))

    def test_parameters_gradients_and_moments(self):
        net, optimizer = make()
        expected = {name: {} for name in ("grad_reduced", "grad_unreduced", "exp_avg", "exp_avg_sq", "param_origin",
                                          "param_updated")}

        def seen(step):
            for name, parameter in net.named_parameters():
                if not parameter.requires_grad:
                    continue
                expected["param_origin"][step, name] = norm(parameter)
                if step > 0:
                    expected["param_updated"][step - 1, name] = norm(parameter)
                if parameter.grad is not None:
                    expected["grad_reduced"][step, name] = expected["grad_unreduced"][step, name] = norm(parameter.grad)
                    for key in ("exp_avg", "exp_avg_sq"):
                        if step > 0:
                            expected[key][step, name] = norm(optimizer.state[parameter][key])

        self.monitor(net, optimizer, **EVERYTHING)
        train(net, optimizer, 3, seen=seen)
        expected["param_updated"].update({(2, name): norm(parameter) for name, parameter in net.named_parameters()
                                          if parameter.requires_grad})
        for prefix, figures in expected.items():
            self.assert_figures(self.figures(prefix), figures)
        self.assertIn((1, "head.bias"), expected["exp_avg"])

    def test_statistics_shape_and_type(self):
        net, optimizer = make()
        wanted = net.head.weight.detach().clone()
        self.monitor(net, optimizer, **EVERYTHING)
        train(net, optimizer, 1)
        row = next(row for row in self.rows("param_origin") if row["name"] == "head.weight")
        got = {key: float(row[key]) for key in ("min", "max", "mean", "zeros", "nans")}
        expected = {"min": wanted.min().item(), "max": wanted.max().item(), "mean": wanted.double().mean().item(),
                    "zeros": 0.0, "nans": 0.0}
        self.assert_figures(got, expected)
        self.assertEqual((row["vpp_stage"], row["shape"], row["dtype"]), ("0", "[2, 4]", "torch.float32"))

    def test_modules_and_their_gradients(self):
        net, optimizer = make()
        values = {}
        net.layers[1].fc.register_forward_hook(lambda module, args, output: values.update(out=norm(output)))

        def watch(module, args, output):
            output.register_hook(lambda gradient: values.update(grad=norm(gradient)))

        net.head.register_forward_hook(watch)
        self.monitor(net, optimizer, **EVERYTHING)
        train(net, optimizer, 1)
        forward, backward = self.figures("actv"), self.figures("actv_grad")
        self.assert_figures({"out": forward[0, "layers.1.fc.output", 0]}, {"out": values["out"]})
        self.assert_figures({"grad": backward[0, "head.output", 0]}, {"grad": values["grad"]})
        names = {name for _, name, _ in forward}
        self.assertEqual({name for name in names if name.startswith("layers.0.") and ".fc" not in name},
                         {"layers.0.input", "layers.0.output_0", "layers.0.output_1", "layers.0.output_2"})
        self.assertTrue({".input", ".output", "emb.input", "frozen.output"} <= names)
        # Values other than tensors, and gradients that do not come, are there without figures.
        self.assertTrue(math.isnan(forward[0, "layers.0.output_2", 0]))
        self.assertTrue(math.isnan(backward[0, "emb.input", 0]))
        self.assertTrue(math.isnan(backward[0, "layers.0.output_1", 0]))

    def test_sign_agreement_update_and_ratio(self):
        net, optimizer = make()
        expected = {}

        def seen(step):
            for name, parameter in net.named_parameters():
                if parameter.grad is None:
                    continue
                if step == 0:
                    expected["other", step, name] = 1.0
                    continue
                state = optimizer.state[parameter]
                same = (torch.sign(parameter.grad) * torch.sign(state["exp_avg"])).double()
                expected["other", step, name] = (same.mean().item() + 1) / 2
                mean = state["exp_avg"].double() / (1 - 0.9 ** step)
                root = (state["exp_avg_sq"].double() / (1 - 0.999 ** step)).sqrt()
                expected["update", step, name] = norm(mean / (root + 1e-8))

        self.monitor(net, optimizer, **EVERYTHING)
        train(net, optimizer, 3, seen=seen)
        rows = [("other", int(row["step"]), row["name"], float(row["mean"])) for row in self.rows("other")]
        agreement = {row[:3]: row[3] for row in rows}
        self.assert_figures(agreement, {key: value for key, value in expected.items() if key[0] == "other"})
        update = {("update",) + key: value for key, value in self.figures("update").items()}
        wanted = {key: value for key, value in expected.items() if key[0] == "update"}
        self.assertEqual(sorted(update), sorted(wanted))
        for key, value in wanted.items():
            self.assertAlmostEqual(update[key], value, delta=1e-4 * value)
        self.assertEqual(sorted(self.figures("ratio")), sorted(key[1:] for key in wanted))

    def test_losses_stay_bit_for_bit(self):
        for optimizer_type in (torch.optim.Adam, torch.optim.SGD):
            torch.manual_seed(7)
            net, optimizer = make(optimizer_type)
            bare = train(net, optimizer, 50)
            after = torch.rand(3)
            torch.manual_seed(7)
            net, optimizer = make(optimizer_type)
            self.monitor(net, optimizer, recording_l2_features=True, l2_targets={"linear_hook": []}, stack_info=True,
                         **EVERYTHING)
            self.assertEqual(train(net, optimizer, 50), bare)
            self.assertTrue(torch.equal(torch.rand(3), after))
            self.assertEqual(len(self.rows("linear_hook")), 50 * 4)

    def test_figures_of_a_step_do_not_come_again(self):
        """The Python tool repeats the gradients of the last step that had one."""
        torch.manual_seed(1)
        a, b = nn.Linear(2, 2), nn.Linear(2, 2)
        net = nn.ModuleDict({"a": a, "b": b})
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.monitor(net, optimizer, xy_distribution=True, wg_distribution=True)
        for step in range(3):
            optimizer.zero_grad()
            for parameter in net.parameters():
                parameter.grad = None
            x = a(torch.ones(1, 2))
            (b(x) if step != 1 else x).sum().backward()
            optimizer.step()
        for prefix in ("grad_reduced", "grad_unreduced", "actv_grad"):
            steps = {int(row["step"]) for row in self.rows(prefix) if row["name"].startswith("b.")}
            self.assertEqual(steps, {0, 2}, prefix)


class MicroBatches(MonitorCase):
    def test_accumulation(self):
        net, optimizer = make(torch.optim.SGD)
        sums = {}
        net.head.weight.register_hook(lambda gradient: sums.setdefault("parts", []).append(norm(gradient)))
        self.monitor(net, optimizer, {"grad_acc_steps": 4}, monitor_mbs_grad=True, ndigits=17, xy_distribution=True,
                     wg_distribution=True)
        totals = []
        train(net, optimizer, 2, 4, seen=lambda step: totals.append(norm(net.head.weight.grad)))
        got = {key: value for key, value in self.figures("grad_unreduced").items() if key[1] == "head.weight"}
        self.assertEqual(sorted(got), [(step, "head.weight", micro) for step in range(2) for micro in range(4)])
        # The running sum: of the first micro batch its own, of the last one what is reduced.
        self.assert_figures({"first": got[0, "head.weight", 0], "last": got[1, "head.weight", 3]},
                            {"first": sums["parts"][0], "last": totals[1]})
        self.assertEqual({key[2] for key in self.figures("actv")}, {0, 1, 2, 3})

    def test_only_the_last_micro_batch(self):
        net, optimizer = make(torch.optim.SGD)
        totals = []
        self.monitor(net, optimizer, {"grad_acc_steps": 2}, ndigits=17, wg_distribution=True)
        train(net, optimizer, 2, 2, seen=lambda step: totals.append(norm(net.head.weight.grad)))
        got = self.figures("grad_unreduced")
        self.assert_figures({step: got[step, "head.weight"] for step in (0, 1)}, dict(enumerate(totals)))

    def test_window_and_evaluation(self):
        net, optimizer = make(torch.optim.SGD)
        self.monitor(net, optimizer, start_step=1, step_interval=2, collect_times=2, xy_distribution=True,
                     wg_distribution=True)

        def evaluate(step):
            net.eval()
            with torch.no_grad():
                net(torch.zeros(9, 9, dtype=torch.int64))
            net.train()

        train(net, optimizer, 7, seen=evaluate)
        for prefix in ("actv", "actv_grad", "grad_reduced", "grad_unreduced"):
            self.assertEqual({int(row["step"]) for row in self.rows(prefix)}, {1, 3}, prefix)
        self.assertNotIn("[9, 9]", {row["shape"] for row in self.rows("actv")})
        self.assertFalse(self.monitors[0].monitoring)

    def test_counts_start_where_the_training_goes_on(self):
        net, optimizer = make()
        self.monitor(net, optimizer, {"start_iteration": 40}, wg_distribution=True)
        train(net, optimizer, 2)
        self.assertEqual({int(row["step"]) for row in self.rows("grad_reduced")}, {40, 41})


class Optimizers(MonitorCase):
    def test_a_scheduler_that_wraps_step(self):
        net, optimizer = make()
        self.monitor(net, optimizer, wg_distribution=True)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        train(net, optimizer, 2)
        scheduler.step()
        self.assertEqual({int(row["step"]) for row in self.rows("grad_reduced")}, {0, 1})

    def test_several_optimizers(self):
        """One row a step, when both have stepped; one that sits a step out leaves no figures there."""
        torch.manual_seed(3)
        net = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
        first = torch.optim.SGD(net["a"].parameters(), lr=0.1)
        second = torch.optim.Adam(net["b"].parameters(), lr=0.1)
        monitor = self.monitor(net, [first, second], param_distribution=True, wg_distribution=True)
        for step in range(4):
            first.zero_grad()
            second.zero_grad()
            net["b"](net["a"](torch.ones(1, 2))).sum().backward()
            first.step()
            if step not in (1, 3):
                second.step()
        monitor.stop()  # ends the step of one alone
        steps = {name: sorted({int(row["step"]) for row in self.rows("param_updated") if row["name"] == name})
                 for name in ("a.weight", "b.weight")}
        self.assertEqual(steps, {"a.weight": [0, 1, 2, 3], "b.weight": [0, 2]})

    def test_a_step_is_in_its_files_when_the_optimizer_has_stepped(self):
        """For readers at that time, and however the process ends; of several optimizers at exit."""
        run_script(ENDS_AT_ONCE, self.folder, self.configure(**EVERYTHING), 1)
        self.assertEqual({int(row["step"]) for row in self.rows("actv")}, set(range(20)))
        self.assertEqual({int(row["step"]) for row in self.rows("param_updated")}, set(range(20)))
        run_script(ENDS_AT_ONCE, self.folder, self.configure(**EVERYTHING), 2)
        self.assertEqual({int(row["step"]) for row in self.rows("param_updated")}, set(range(20)))

    def test_two_models_with_equal_names(self):
        torch.manual_seed(3)
        nets = [nn.Linear(2, 2), nn.Linear(2, 2)]
        optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
        monitor = self.monitor(nets[0], optimizers[0], wg_distribution=True)
        monitor.set_monitor(nets[1], optimizers[1])
        nets[1](nets[0](torch.ones(1, 2))).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
        rows = [(row["vpp_stage"], row["name"], row["step"]) for row in self.rows("grad_reduced")]
        self.assertEqual(sorted(rows), [("0", "bias", "0"), ("0", "weight", "0"), ("1", "bias", "0"), ("1", "weight", "0")])

    def test_a_step_that_the_scaler_skips(self):
        net, optimizer = make()
        self.monitor(net, optimizer, wg_distribution=True, xy_distribution=True)
        train(net, optimizer, 1)
        (net(torch.zeros(1, 1, dtype=torch.int64)) ** 2).mean().backward()  # and no step, as with an Inf
        train(net, optimizer, 1)
        self.assertEqual({int(row["step"]) for row in self.rows("grad_reduced")}, {0, 1})
        self.assertNotIn("[1, 1]", {row["shape"] for row in self.rows("actv") if row["name"] == ".input"})


class Robustness(MonitorCase):
    def test_in_place_operations_on_outputs(self):
        class Inplace(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                self.act = nn.ReLU(inplace=True)

            def forward(self, x):
                y = self.fc(self.act(self.fc(x)))
                y += 1
                return y

        torch.manual_seed(0)
        net = Inplace()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.monitor(net, optimizer, **EVERYTHING)
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        self.assertIn((0, "act.output", 0), self.figures("actv_grad"))

    def test_recomputed_forwards_count_once(self):
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)
        inner = nn.Linear(3, 3)
        net = nn.ModuleDict({"inner": inner})
        for keys in ({"use_reentrant": True}, {"use_reentrant": False}):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            self.monitor(net, optimizer, {"grad_acc_steps": 2}, xy_distribution=True, wg_distribution=True)
            for _ in range(2):
                x = torch.ones(1, 3, requires_grad=True)
                checkpoint(inner, x, **keys).sum().backward()
            optimizer.step()
            self.assertEqual(sorted(self.figures("actv")),
                             [(0, "inner.%s" % word, micro) for word in ("input", "output") for micro in (0, 1)])
            self.assertTrue(self.figures("actv_grad"))
            self.monitors.pop().stop()

    def test_without_main_gradients(self):
        """The default of params_have_main_grad is for Megatron: there the Python tool ends the training."""
        net, optimizer = make()
        self.monitor(net, optimizer, wg_distribution=True)
        train(net, optimizer, 1)
        self.assertEqual(len(self.rows("grad_unreduced")), 7)

    def test_failing_hooks_do_not_reach_the_training(self):
        net, optimizer = make()
        bare = train(net, optimizer, 3)
        net, optimizer = make()
        monitor = self.monitor(net, optimizer, **EVERYTHING)

        def fail(*unused):
            raise RuntimeError("of the engine")

        monitor._engine.observe = monitor._engine.series = monitor._engine.absent = fail
        self.assertEqual(train(net, optimizer, 3), bare)

    def test_a_folder_that_cannot_be_written(self):
        net, optimizer = make()
        config = self.configure(**EVERYTHING)
        blocked = os.path.join(self.folder, "blocked")
        with open(blocked, "w", encoding="utf-8"):
            pass
        os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(blocked, "out")
        monitor = TrainerMon(config)
        self.monitors.append(monitor)
        monitor.set_monitor(net, optimizer)
        self.assertEqual(len(train(net, optimizer, 2)), 2)

    def test_copies_and_forks(self):
        import copy
        net, optimizer = make()
        self.monitor(net, optimizer, xy_distribution=True)
        twin = copy.deepcopy(net)
        twin(torch.zeros(7, 7, dtype=torch.int64))
        child = os.fork()
        if child == 0:
            try:
                told = io.StringIO()
                with contextlib.redirect_stderr(told):
                    net(torch.zeros(8, 8, dtype=torch.int64))
                    optimizer.step()
                os._exit(1 if told.getvalue() else 0)
            except BaseException:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        train(net, optimizer, 1)
        shapes = {row["shape"] for row in self.rows("actv") if row["name"] == "emb.input"}
        self.assertEqual(shapes, {"[3, 2]"})

    def test_stop_takes_everything_off(self):
        net, optimizer = make()
        hooks = [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in net.modules()]
        monitor = self.monitor(net, optimizer, **EVERYTHING)
        train(net, optimizer, 1)
        monitor.stop()
        train(net, optimizer, 1)
        self.assertEqual([(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in net.modules()], hooks)
        self.assertEqual({int(row["step"]) for row in self.rows("actv")}, {0})

    def test_many_kinds_of_gradients(self):
        """Sparse ones, half precision, none at all."""
        torch.manual_seed(0)
        net = nn.ModuleDict({"emb": nn.Embedding(6, 2, sparse=True), "narrow": nn.Linear(2, 2).to(torch.bfloat16)})
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.monitor(net, optimizer, wg_distribution=True, ndigits=17)
        net["narrow"](net["emb"](torch.tensor([1, 1, 4])).to(torch.bfloat16)).sum().backward()
        expected = {(0, name): norm(parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad)
                    for name, parameter in net.named_parameters()}
        optimizer.step()
        self.assert_figures(self.figures("grad_reduced"), expected)


if __name__ == "__main__":
    unittest.main()
