# SPDX-License-Identifier: Apache-2.0
"""The monitor on two ranks with gloo, switched on while training, its alerts, structure, stacks, and TrainerMonitorV2."""

from monitor_helpers import *
from torch import nn

RANKS = """
import os, sys, torch
import torch.distributed as dist
from msprobe.pytorch import TrainerMon
rank, folder = int(sys.argv[1]), sys.argv[2]
os.environ["MONITOR_OUTPUT_DIR"] = folder
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "store"), rank=rank, world_size=2)
torch.manual_seed(6)
original = dist.all_reduce
monitor = TrainerMon(os.path.join(folder, "config.json"))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
monitor.set_monitor(model, optimizer, dp_group=dist.group.WORLD)
for step in range(2):
    optimizer.zero_grad()
    model(torch.full((1, 2), 1.0 + 2 * rank)).sum().backward()
    tensor = torch.tensor([1.0 + rank, 4.0])
    dist.all_reduce(tensor)
    work = dist.all_reduce(tensor.clone() * 10, async_op=True)
    assert work.wait() is not None
    lengths = [torch.zeros(1), torch.zeros(1)]
    dist.all_gather(lengths, torch.tensor([float(rank)]))
    if hasattr(dist, "all_gather_single"):
        for gather in (dist.all_gather_into_tensor, dist.all_gather_single, dist._all_gather_base):
            gather(torch.zeros(2), torch.tensor([float(rank)]))
    dist.all_reduce(torch.ones(1), async_op=True)  # not waited for
    optimizer.step()
dist.barrier()
monitor.stop()
assert dist.all_reduce is original
dist.destroy_process_group()
"""


class Ranks(MonitorCase):
    def test_two_ranks(self):
        path = self.configure(wg_distribution=True, ndigits=17, ops=["norm", "mean", "max"],
                              cc_distribution={"enable": True, "cc_pre_hook": True})
        run_two_ranks(os.path.dirname(path), RANKS)
        for rank in (0, 1):
            # Before the reduction each rank has its own value, after it both have the mean, which the first rank writes.
            unreduced = self.figures("grad_unreduced", rank=rank)
            self.assert_figures({"w": unreduced[0, "module.weight"]}, {"w": math.sqrt(2) * (1 + 2 * rank)})
        self.assert_figures(self.figures("grad_reduced", rank=0),
                            {(step, "module." + name): value for step in (0, 1)
                             for name, value in (("weight", math.sqrt(8)), ("bias", 1.0))})
        self.assertEqual(self.rows("grad_reduced", 1), [])
        rows = {(row["step"], row["name"]): row for row in self.rows("comm")}
        self.assertEqual(rows["0", "all_gather/rank0/post_0"]["max"], "1.0")
        # Two calls that were waited for are one row: the sum of norms, the greatest of all, the mean of means.
        folded = rows["1", "all_reduce/rank0/post_0"]
        self.assertAlmostEqual(float(folded["norm"]), 21 * math.hypot(3, 8), places=5)
        self.assertEqual((float(folded["max"]), float(folded["mean"])), (160.0, 57.75))
        self.assertEqual(float(rows["0", "all_reduce/rank0/pre_0"]["max"]), 80.0)
        self.assertEqual({row["vpp_stage"] for row in rows.values()}, {""})
        if hasattr(torch.distributed, "all_gather_single"):  # one function under three names
            self.assertEqual(rows["0", "all_gather_into_tensor/rank0/post_0"]["norm"], "3.0")
            self.assertEqual(len({name.split("/")[0] for _, name in rows}), 3)


def step(net, optimizer, value=1.0):
    optimizer.zero_grad()
    net(torch.full((1, 2), float(value))).sum().backward()
    optimizer.step()


def make():
    torch.manual_seed(4)
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    return net, torch.optim.SGD(net.parameters(), lr=0.01)


class Switching(MonitorCase):
    def write(self, number, **keys):
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(dict({"targets": {}, "step_count_per_record": 100}, **keys), file)
        os.utime(self.path, (10 ** 9 + number, 10 ** 9 + number))

    def test_on_and_off_while_training(self):
        self.path = self.configure(dynamic_on=False)
        os.environ["DYNAMIC_MONITOR"] = "True"
        try:
            monitor = TrainerMon(self.path)
        finally:
            del os.environ["DYNAMIC_MONITOR"]
        self.monitors.append(monitor)
        net, optimizer = make()
        monitor.set_monitor(net, optimizer)
        plan = {1: {"dynamic_on": True, "wg_distribution": True}, 4: {"dynamic_on": False},
                7: {"dynamic_on": True, "param_distribution": True, "collect_times": 2}}
        on = []
        for number in range(12):
            if number in plan:
                self.write(number, **plan[number])
            step(net, optimizer)
            on.append(monitor.monitoring)
        self.assertEqual({int(row["step"]) for row in self.rows("grad_reduced")}, {2, 3, 4})
        self.assertEqual({int(row["step"]) for row in self.rows("param_origin")}, {8, 9})
        self.assertEqual(on, [False] + [True] * 3 + [False] * 3 + [True] * 2 + [False] * 3)
        with open(self.path, encoding="utf-8") as file:
            self.assertIs(json.load(file)["dynamic_on"], False)


class Alerts(MonitorCase):
    def test_callback_and_file(self):
        net, optimizer = make()
        rules = [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 5}}, {"rule_name": "AnomalyNan"}]
        monitor = self.monitor(net, optimizer, wg_distribution=True, alert={"rules": rules, "dump": True})
        told = []
        monitor.set_alert_callback(told.append)
        for number in range(8):
            step(net, optimizer, {5: 100.0, 7: float("nan")}.get(number, 1.0))
        self.assertEqual([{alert["step"] for alert in alerts} for alerts in told], [{5}, {7}])
        self.assertEqual([{alert["rule"] for alert in alerts} for alerts in told],
                         [{"AnomalyTurbulence"}, {"AnomalyNan"}])
        self.rows("grad_reduced")  # writes what there is
        with open(os.path.join(self.output, "anomaly_detected", "rank0", "anomaly.json"), encoding="utf-8") as file:
            entries = json.load(file)
        self.assertEqual({entry["step"] for entry in entries.values()}, {5, 7})

    def test_a_callback_that_raises(self):
        net, optimizer = make()
        monitor = self.monitor(net, optimizer, wg_distribution=True,
                               alert={"rules": [{"rule_name": "AnomalyNan"}], "dump": False})
        monitor.set_alert_callback(lambda alerts: alerts[0]["no such key"])
        step(net, optimizer, float("nan"))


class Structure(MonitorCase):
    def test_structure_ends_the_training(self):
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 1)

            def forward(self, x):
                return {"logits": self.fc(x)}

        net = Named()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.monitor(net, optimizer, print_struct=True)
        net(torch.ones(3, 2))["logits"].sum().backward()
        with self.assertRaisesRegex(Exception, "print_struct ends the training after the first step"):
            optimizer.step()
        with open(os.path.join(self.output, "module_struct", "rank0", "module_struct.json"), encoding="utf-8") as file:
            found = json.load(file)
        one = {"config": "tuple[1]", "0": "size=(3, 1), dtype=torch.float32"}
        self.assertEqual(found["0:fc"], {
            "input": {"config": "list[1]", "0": "size=(3, 2), dtype=torch.float32"},
            "output": {"config": "tensor", "tensor": "size=(3, 1), dtype=torch.float32"},
            "input_grad": {"config": "tuple[1]", "0": "<class 'NoneType'>"}, "output_grad": one})
        self.assertEqual(found["0:"]["output"], {"config": "<class 'dict'>"})
        self.assertNotIn("input_grad", found["0:"])

    def test_stacks(self):
        net, optimizer = make()
        self.monitor(net, optimizer, stack_info=True, wg_distribution=True)
        step(net, optimizer)
        step(net, optimizer)
        self.rows("grad_reduced")
        path, = glob.glob(os.path.join(self.output, "*-rank0-*", "stack_info.csv"))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("monitor_ranks_test.py", text)
        self.assertNotIn(os.path.join("pytorch", "monitor"), text)
        self.assertEqual([line for line in text.splitlines() if line.startswith("0:")],
                         [line for line in text.splitlines() if line.startswith(("0:0,", "0:1,", "0:,"))])


class V2(MonitorCase):
    def start(self, model, optimizer, more=None, **keys):
        from msprobe.core.monitor_v2 import TrainerMonitorV2
        path = self.configure(output_dir=self.folder, **keys)
        self.output = self.folder
        monitor = TrainerMonitorV2(path)
        monitor.start(model=model, optimizer=optimizer, **(more or {}))
        self.monitors.append(monitor)
        return monitor

    def table(self, name):
        import csv
        with open(os.path.join(self.folder, "rank_0", name), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def test_five_monitors_follow_the_optimizer(self):
        torch.manual_seed(4)
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        on = {"enabled": True}
        monitor = self.start(net, optimizer, {"grad_acc_steps": 2},
                             monitors={"module": {}, "weight_grad": on, "optimizer": on, "param": on})
        sums = []
        for _ in range(2):
            optimizer.zero_grad()
            for _ in range(2):
                net(torch.ones(1, 2)).sum().backward()
            sums.append(norm(net[0].weight.grad))
            optimizer.step()
            monitor.step()  # is the optimizer's
        gradients = {(row["step"], row["module_name"], row["scope"]): row for row in self.table("weight_grad_step0-99.csv")}
        for number in (0, 1):
            for scope in ("reduced", "unreduced"):
                row = gradients[str(number), "0.weight", scope]
                self.assertAlmostEqual(float(row["norm"]), sums[number], delta=1e-6)
                self.assertEqual((row["vpp_stage"], row["micro_step"]), ("-1", "2"))
        modules = [row["module_name"] for row in self.table("module_step0-99.csv") if row["step"] == "0"]
        self.assertEqual(modules.count("0.input.0"), 2)
        moments = {row["module_name"]: row for row in self.table("optimizer_step0-99.csv") if row["step"] == "1"}
        self.assertAlmostEqual(float(moments["0.weight.exp_avg"]["norm"]), norm(optimizer.state[net[0].weight]["exp_avg"]),
                               delta=1e-6)
        after = [row for row in self.table("param_step0-99.csv") if row["scope"] == "param_updated"][-4]
        self.assertAlmostEqual(float(after["norm"]), norm(net[0].weight), delta=1e-6)
        monitor.stop()
        step(net, optimizer)  # as if it had never been there

    def test_steps_by_hand(self):
        net, optimizer = make()
        monitor = self.start([net], optimizer, patch_optimizer_step=False, start_step=1, step_interval=2,
                             monitors={"weight_grad": {"enabled": True, "ops": "norm"}})
        for _ in range(4):
            step(net, optimizer)
            monitor.step()
        names = []
        for path in sorted(glob.glob(os.path.join(self.folder, "rank_0", "*.csv"))):
            names += [(row["vpp_stage"], row["step"], row["module_name"]) for row in self.table(path)
                      if row["scope"] == "reduced"]
        self.assertEqual(len(names), 8)
        self.assertEqual({name[:2] for name in names}, {("0", "1"), ("0", "3")})
        self.assertIn(("0", "1", "0:0.weight"), names)


if __name__ == "__main__":
    unittest.main()
