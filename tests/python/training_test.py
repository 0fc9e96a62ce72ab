# SPDX-License-Identifier: Apache-2.0
"""Tests what is recorded besides calls: buffers of modules, optimizers and tied parameters (`training` in dump.json)."""

import copy
import glob

from helpers import *


class Net(nn.Module):
    def __init__(self, tied=True):
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 8, bias=False)
        self.register_buffer("scale", torch.full((4,), 2.0), persistent=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.norm(self.embed(tokens) * self.scale))


def make_optimizers(net):
    first = list(net.norm.parameters())
    rest = [parameter for parameter in net.parameters() if all(parameter is not one for one in first)]
    made = {
        "AdamW": torch.optim.AdamW([{"params": first, "weight_decay": 0.0}, {"params": rest}], 1e-3),
        "SGD": torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, foreach=True),
        "Adam": torch.optim.Adam(net.parameters(), 1e-3, foreach=False),
    }
    return made


class Training(Case):
    def train(self, net, optimizer, debugger=None, change=None, steps=2):
        losses = []
        for step in range(steps):
            tokens = torch.randint(0, 8, (6,), generator=torch.Generator().manual_seed(step))
            if debugger is not None:
                debugger.start(model=net)
            optimizer.zero_grad()
            loss = functional.cross_entropy(net(tokens), tokens.roll(1))
            loss.backward()
            if change is not None:
                change(net)
            optimizer.step()
            if debugger is not None:
                debugger.stop()
                debugger.step()
            losses.append(loss.item())
        return losses

    def test_optimizers_are_described_and_training_stays_as_it_is(self):
        for level in ("L0", "L1", "mix"):
            for name in make_optimizers(Net()):
                torch.manual_seed(1)
                plain = Net()
                recorded = copy.deepcopy(plain)
                expected = self.train(plain, make_optimizers(plain)[name])
                losses = self.train(recorded, make_optimizers(recorded)[name], self.open(level))
                self.assertEqual(losses, expected)
                for one, other in zip(plain.parameters(), recorded.parameters()):
                    self.assertTrue(torch.equal(one, other))
                tree = self.tree(1)
                self.assertEqual(tree.errors, "")
                training = tree.dump["training"]
                self.assertEqual(training["tied_parameters"], [["embed.weight", "head.weight"]])
                self.assertEqual(len(training["optimizers"]), 1)
                optimizer = training["optimizers"][0]
                self.assertEqual(optimizer["class"], name)
                names = [parameter for group in optimizer["groups"] for parameter in group["parameters"]]
                self.assertEqual(sorted(names), ["embed.weight", "norm.bias", "norm.weight"])
                settings = optimizer["groups"][0]["settings"]
                self.assertEqual(settings["lr"], 0.1 if name == "SGD" else 1e-3)
                if name != "SGD":
                    self.assertEqual(settings["betas"], [0.9, 0.999])
                    self.assertEqual(optimizer["groups"][0]["steps"], [1])

    def test_an_optimizer_that_has_a_scheduler_already(self):
        """Before PyTorch 2.0 the scheduler keeps the step() of the class that it found."""
        script = """
import sys, torch
net = torch.nn.Linear(2, 2)
optimizer = torch.optim.AdamW(net.parameters(), 0.5)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(dump_path=sys.argv[1], task=sys.argv[2], level="L1")
if sys.argv[2] == "grad_probe":
    debugger.monitor(net)
for _ in range(2):
    if sys.argv[2] != "grad_probe":
        debugger.start(net)
    optimizer.zero_grad()
    net(torch.ones(2)).sum().backward()
    optimizer.step()
    scheduler.step()
    if sys.argv[2] != "grad_probe":
        debugger.stop()
        debugger.step()
"""
        dump = os.path.join(self.folder, "dump")
        done = run_script(script, self.folder, dump, "statistics", fresh=True)
        self.assertNotIn("lr_scheduler.step()", done.stderr)  # PyTorch warns if it does not find its own mark
        for step in range(2):
            described = find_tree(dump, step).dump["training"]["optimizers"]
            self.assertEqual([optimizer["class"] for optimizer in described], ["AdamW"])
        probed = os.path.join(self.folder, "probed")
        run_script(script, self.folder, probed, "grad_probe", fresh=True)
        self.assertTrue(glob.glob(os.path.join(probed, "**", "*.csv"), recursive=True))

    def test_norms_are_those_that_the_optimizer_takes(self):
        net = Net()
        self.train(net, torch.optim.SGD(net.parameters(), 0.1), self.open("L0"), steps=1,
                   change=lambda net: [parameter.grad.mul_(3) for parameter in net.parameters()])
        group = self.tree().dump["training"]["optimizers"][0]["groups"][0]
        recorded = self.tree().data["Module.norm.BatchNorm1d.parameters_grad.0"]["weight"][0]["Norm"]
        taken = dict(zip(group["parameters"], group["gradient_norms"]))["norm.weight"]
        self.assertAlmostEqual(taken / recorded, 3, places=5)

    def test_what_json_cannot_hold_is_left_out(self):
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        optimizer.param_groups[0]["schedule"] = lambda step: step
        optimizer.param_groups[0]["bound"] = float("inf")
        self.train(net, optimizer, self.open("L0"), steps=1)
        settings = self.tree().dump["training"]["optimizers"][0]["groups"][0]["settings"]
        self.assertNotIn("schedule", settings)
        self.assertEqual(settings["bound"], "inf")

    def test_buffers_as_they_are_before_the_call(self):
        for level, task in (("L0", "statistics"), ("mix", "tensor")):
            net = Net(tied=False)
            self.train(net, torch.optim.SGD(net.parameters(), 0.1), self.open(level, task), steps=1)
            tree = self.tree()
            self.assertEqual(tree.dump["training"]["tied_parameters"], [])
            norm = tree.data["Module.norm.BatchNorm1d.forward.0"]["buffers"]
            self.assertEqual(norm["running_mean"]["Norm"], 0)
            self.assertEqual(norm["num_batches_tracked"]["Max"], 0)
            self.assertNotIn("data_name", norm["running_mean"])
            self.assertGreater(float(net.norm.running_mean.abs().sum()), 0)

    def test_what_the_model_takes(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(2, 2)

            def forward(self, x, masks=None):
                return self.inner(x)

        model = Model()
        for level in ("L0", "L1"):
            debugger = self.open(level)
            debugger.start(model=model)
            model(torch.tensor([[1.0, -3.0]]), {"one": torch.tensor([True, False]), "none": None})
            model(torch.ones(2, 2))
            model(torch.ones(2, 2).to_sparse().to_dense())
            debugger.stop()
            model(torch.zeros(2, 2))  # not recorded
            debugger.step()
            calls = self.tree().dump["training"]["inputs"]
            self.assertEqual([len(call) for call in calls], [2, 1, 1])
            first = calls[0][0]
            self.assertEqual((first["dtype"], first["shape"], first["Max"], first["Min"], first["Mean"]),
                             ("torch.float32", [1, 2], 1.0, -3.0, -1.0))
            self.assertAlmostEqual(first["Norm"], 10 ** 0.5, places=6)
            self.assertEqual((calls[0][1]["Max"], calls[0][1]["Min"]), (1.0, 0.0))

    def test_true_and_infinite_elements_are_counted(self):
        debugger = self.open("L1")
        debugger.start()
        scores = torch.zeros(2, 3).masked_fill(torch.tensor([True, False, True]), float("-inf"))
        functional.softmax(scores, -1)
        debugger.stop()
        debugger.step()
        data = self.tree().data
        self.assertEqual(data["Tensor.masked_fill.0.forward"]["input_args"][1]["True_count"], 2)
        self.assertEqual(data["Functional.softmax.0.forward"]["input_args"][0]["Neg_inf_count"], 4)
        self.assertNotIn("Neg_inf_count", data["Functional.softmax.0.forward"]["output"][0])

    def test_the_scale_of_the_loss(self):
        try:
            scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        except (AttributeError, TypeError):
            self.skipTest("torch.amp.GradScaler for the CPU is of PyTorch 2.3")
        for skipped in (False, True):
            net = Net()
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            debugger = self.open("L0")
            debugger.start(model=net)
            loss = functional.cross_entropy(net(torch.arange(6)), torch.arange(6))
            scaler.scale(loss).backward()
            if skipped:
                net.norm.weight.grad.fill_(float("inf"))
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            debugger.stop()
            debugger.step()
            training = self.tree().dump["training"]
            self.assertEqual(training["loss_scale"], {"scale": before, "skipped": skipped})
            self.assertEqual(len(training["optimizers"]), 0 if skipped else 1)

    def test_gradients_that_a_fused_optimizer_divides_itself(self):
        class Own(torch.optim.Optimizer):
            grad_scale = torch.tensor(8.0)

            def step(self, closure=None):
                pass

        net = Net()
        optimizer = Own(net.parameters(), {})
        self.train(net, optimizer, self.open("L0"), steps=1)
        group = self.tree().dump["training"]["optimizers"][0]["groups"][0]
        recorded = self.tree().data["Module.norm.BatchNorm1d.parameters_grad.0"]["weight"][0]["Norm"]
        taken = dict(zip(group["parameters"], group["gradient_norms"]))["norm.weight"]
        self.assertAlmostEqual(recorded / taken, 8, places=4)

    def test_settings_of_pytorch(self):
        def step(debugger):
            debugger.start()
            functional.relu(torch.ones(2))
            debugger.stop()
            debugger.step()

        before = torch.backends.cudnn.benchmark
        debugger = self.open("L1")
        try:
            step(debugger)
            torch.backends.cudnn.benchmark = not before
            torch.set_float32_matmul_precision("high")
            step(debugger)
        finally:
            torch.backends.cudnn.benchmark = before
            torch.set_float32_matmul_precision("highest")
        self.close()
        first, second = (self.tree(number).dump["training"]["torch_flags"] for number in range(2))
        self.assertEqual(first["torch.backends.cudnn.benchmark"], before)
        self.assertEqual(first["torch.get_default_dtype()"], "torch.float32")
        self.assertEqual(first["torch.autocast for cpu"], "off")
        changed = {name for name in first if first[name] != second.get(name)}
        self.assertLessEqual({"torch.backends.cudnn.benchmark", "torch.get_float32_matmul_precision()"}, changed)
        self.assertLessEqual(changed, {"torch.backends.cudnn.benchmark", "torch.get_float32_matmul_precision()",
                                       "torch.backends.cuda.matmul.allow_tf32",
                                       "torch.backends.mkldnn.matmul.fp32_precision"})

    def test_the_devices_of_the_tensors(self):
        net = Net()
        self.train(net, torch.optim.SGD(net.parameters(), 0.1), self.open("mix"), steps=1)
        self.assertEqual(self.tree().dump["training"]["devices"], ["cpu"])

    def test_a_closure_is_not_the_optimizers(self):
        """As in Lightning, where optimizer.step() runs the training step."""
        net = Net()
        tokens = torch.arange(6).view(2, 3) % 8
        norms = []

        def closure():
            loss = functional.cross_entropy(net(tokens.flatten()), tokens.flatten().roll(1))
            optimizer.zero_grad()
            loss.backward()
            norms.append([parameter.grad.norm().item() for parameter in net.parameters()])
            return loss

        for by_name in (False, True):
            optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
            debugger = self.open("mix")
            for _ in range(2):
                debugger.start(model=net)
                loss = optimizer.step(closure=closure) if by_name else optimizer.step(closure)
                self.assertTrue(loss.requires_grad)
                debugger.stop()
                debugger.step()
            for step in range(2):
                tree = self.tree(step)
                self.assertEqual(tree.errors, "")
                self.assertIsNone(tree.construct["Functional.cross_entropy.0.forward"])
                described, = tree.dump["training"]["optimizers"]
                for one, other in zip(described["groups"][0]["gradient_norms"], norms[step]):
                    self.assertAlmostEqual(one, other, places=6)
            norms.clear()

    def test_the_python_tools_dumps_have_neither(self):
        net = Net()
        self.train(net, torch.optim.SGD(net.parameters(), 0.1), self.open("mix", python_compatible=True), steps=1)
        self.assertNotIn("training", self.tree().dump)
        self.assertFalse(any("buffers" in entry for entry in self.tree().data.values()))


if __name__ == "__main__":
    unittest.main()
