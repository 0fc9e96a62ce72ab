# SPDX-License-Identifier: Apache-2.0
"""Optimizers that hold copies and shards (emulated: the name of the class decides), buckets, devices, features."""

import sys
import types

from monitor_helpers import *
from torch import nn


def make_net():
    """In bfloat16, with main gradients in float32 as Megatron's buffers give them."""
    torch.manual_seed(14)
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 4, bias=False)).to(torch.bfloat16)
    for parameter in net.parameters():
        parameter.main_grad = torch.zeros(parameter.shape)
    return net, list(net.parameters())


def adam_state(tensors):
    return {tensor: {"exp_avg": torch.full_like(tensor, 0.25), "exp_avg_sq": torch.full_like(tensor, 0.0625)}
            for tensor in tensors}


class Stepping:
    """An optimizer of no kind that PyTorch knows."""

    def __init__(self, parameters):
        self._parameters = parameters

    def step(self):
        with torch.no_grad():
            for parameter in self._parameters:
                parameter.sub_(parameter.main_grad.to(parameter.dtype), alpha=0.1)


def named(name, parameters, **attributes):
    optimizer = type(name, (Stepping,), {})(parameters)
    for key, value in attributes.items():
        setattr(optimizer, key, value)
    return optimizer


def mixed(parameters):
    copies = [parameter.detach().float().clone() for parameter in parameters]
    return named("Float16OptimizerWithFloat16Params", parameters, float16_groups=[parameters],
                 fp32_from_float16_groups=[copies], optimizer=types.SimpleNamespace(state=adam_state(copies)))


def backward(net, parameters):
    for parameter in parameters:
        parameter.main_grad.zero_()
        parameter.grad = None
    net(torch.ones(1, 3, dtype=torch.bfloat16)).float().sum().backward()
    for parameter in parameters:
        parameter.main_grad.add_(parameter.grad.float())


class Copies(MonitorCase):
    KEYS = {"wg_distribution": True, "mv_distribution": True, "param_distribution": True, "ndigits": 17}

    def run_one(self, make):
        net, parameters = make_net()
        optimizer = make(parameters)
        self.monitor(net, optimizer, **self.KEYS)
        backward(net, parameters)
        gradients = {name: parameter.main_grad.clone() for name, parameter in net.named_parameters()}
        optimizer.step()
        return gradients

    def test_mixed_precision(self):
        gradients = self.run_one(mixed)
        self.assert_figures(self.figures("grad_reduced"), {(0, name): norm(one) for name, one in gradients.items()})
        self.assert_figures(self.figures("exp_avg"),
                            {(0, name): 0.25 * math.sqrt(one.numel()) for name, one in gradients.items()})
        self.assertEqual({row["dtype"] for row in self.rows("param_origin")}, {"torch.bfloat16"})

    def test_chained(self):
        gradients = self.run_one(lambda parameters: named("ChainedOptimizer", parameters, chained_optimizers=[
            mixed(parameters[:2]), mixed(parameters[2:])]))
        self.assert_figures(self.figures("grad_reduced"), {(0, name): norm(one) for name, one in gradients.items()})
        self.assertEqual(len(self.figures("exp_avg_sq")), 3)

    def test_a_container_of_optimizers(self):
        """As TorchTitan's: an optimizer whose state is that of the optimizers in it."""
        class Container(torch.optim.Optimizer):
            def __init__(self, optimizers):
                self.optimizers = optimizers
                super().__init__([one for part in optimizers for group in part.param_groups for one in group["params"]], {})

            def step(self):
                for one in self.optimizers:
                    one.step()

        torch.manual_seed(1)
        nets = [torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)]
        optimizer = Container([torch.optim.Adam(net.parameters()) for net in nets])
        self.monitor(nets, optimizer, mv_distribution=True)
        for _ in range(2):
            nets[1](nets[0](torch.ones(1, 3))).sum().backward()
            optimizer.step()
        rows = [row for row in self.rows("exp_avg") if row["step"] == "1"]
        self.assertEqual(sorted((row["vpp_stage"], row["name"]) for row in rows),
                         [("0", "bias"), ("0", "weight"), ("1", "bias"), ("1", "weight")])
        self.assertTrue(all(float(row["norm"]) > 0 for row in rows))

    def test_shards(self):
        """The tail of the first, all of the second, the head of the third parameter."""
        def make(parameters):
            flat = [parameter.detach().float().flatten() for parameter in parameters]
            shards = [flat[0][2:].clone(), flat[1].clone(), flat[2][:3].clone()]
            return named("DistributedOptimizer", parameters, model_float16_groups=[parameters],
                         shard_fp32_from_float16_groups=[shards],
                         optimizer=types.SimpleNamespace(state=adam_state(shards)))

        gradients = self.run_one(make)
        wanted = {(0, "0.weight"): norm(gradients["0.weight"].flatten()[2:]), (0, "0.bias"): norm(gradients["0.bias"]),
                  (0, "1.weight"): norm(gradients["1.weight"].flatten()[:3])}
        self.assert_figures(self.figures("grad_reduced"), wanted)
        self.assertEqual([row["shape"] for row in self.rows("exp_avg")], ["[4]", "[2]", "[3]"])

    def test_zero(self):
        """DeepSpeed's ZeRO: a flat copy of a group, of which this rank has the last two parameters."""
        def make(parameters):
            names = {parameter: str(number) for number, parameter in enumerate(parameters)}
            place = types.SimpleNamespace
            flat = torch.arange(10.0)
            optimizer = named("DeepSpeedZeroOptimizer", parameters, bit16_groups=[parameters], param_names=names,
                              single_partition_of_fp32_groups=[flat], params_in_ipg_bucket=[
                                  (0, parameters[1], 1)],
                              averaged_gradients={0: [torch.ones(2), torch.full((8,), 2.0)]},
                              optimizer=place(state={flat: {"exp_avg": flat, "exp_avg_sq": flat}}))
            optimizer.state_dict = lambda: {"param_slice_mappings": [{"1": place(start=0, numel=2),
                                                                      "2": place(start=2, numel=8)}]}
            optimizer.get_gradient_for_reduction = lambda parameter: parameter.main_grad
            optimizer.average_tensor = lambda tensor: optimizer.averaged.append(tensor)
            optimizer.averaged = []
            step = optimizer.step
            optimizer.step = lambda: (optimizer.average_tensor(1), step())[1]
            return optimizer

        gradients = self.run_one(make)
        self.assert_figures(self.figures("grad_reduced"), {(0, "0.bias"): math.sqrt(2), (0, "1.weight"): math.sqrt(32)})
        self.assert_figures(self.figures("exp_avg"), {(0, "0.bias"): 1.0, (0, "1.weight"): norm(torch.arange(2.0, 10))})
        self.assertNotIn((0, "0.weight"), self.figures("grad_reduced"))
        self.assertEqual(len(gradients), 3)

    def test_buckets_of_megatron(self):
        class Bucket:
            def __init__(self, params):
                self.params = params

            def start_grad_sync(self):
                for parameter in self.params:
                    parameter.main_grad.mul_(0.5)

        name = "megatron.core.distributed.param_and_grad_buffer"
        sys.modules[name] = types.SimpleNamespace(Bucket=Bucket)
        try:
            net, parameters = make_net()
            optimizer = mixed(parameters)
            self.monitor(net, optimizer, **self.KEYS)
            backward(net, parameters)
            before = {(0, key): norm(parameter.main_grad) for key, parameter in net.named_parameters()}
            Bucket(parameters).start_grad_sync()
            optimizer.step()
            self.assert_figures(self.figures("grad_unreduced"), before)
            self.assert_figures(self.figures("grad_reduced"), {key: value / 2 for key, value in before.items()})

            # A plain model on the same machine has no such buffers, and gets its gradients.
            net = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            self.monitor(net, optimizer, **self.KEYS)
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            self.assertEqual(len(self.figures("grad_unreduced")), 2)
        finally:
            del sys.modules[name]


class OnDevice(torch.Tensor):
    """Plain memory of the host that must not be read directly."""

    is_cpu = False


class Device(MonitorCase):
    TENSORS = [torch.tensor([[1.0, -2.0], [3.0, 4.5]]), torch.tensor([1, 2 ** 40, -3]), torch.tensor([True, False]),
               torch.tensor([1.0, float("nan")]), torch.tensor(2.5), torch.empty(0, 2),
               torch.tensor([60000.0, 60000.0, 0.0], dtype=torch.float16).repeat(50),
               torch.ones(3, dtype=torch.bfloat16).expand(4, 3), torch.tensor([-1, 5, 0], dtype=torch.int8)]

    def record(self, tensors):
        net = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        monitor = self.monitor(net, optimizer, ops=["norm", "min", "max", "mean", "zeros", "nans"], ndigits=10)
        copies = set()
        original = torch.Tensor.tolist
        torch.Tensor.tolist = lambda tensor: copies.add((tensor.dtype, tensor.data_ptr())) or original(tensor)
        try:
            for number, tensor in enumerate(tensors):
                monitor.adhoc_check(tensor, "m", "t%d" % number, [], [])
            optimizer.step()
        finally:
            torch.Tensor.tolist = original
        return self.rows("other"), len(copies)

    def test_same_figures_in_one_copy_for_each_type(self):
        on_device = [tensor.as_subclass(OnDevice) for tensor in self.TENSORS]
        _, copies = self.record(on_device * 3)
        self.assertLessEqual(copies, 5)  # float16, bfloat16, float32, float64, int64
        expected, copies = self.record(self.TENSORS)
        self.assertEqual(copies, 0)
        got, copies = self.record(on_device)
        self.assertLessEqual(copies, 5)
        self.assertEqual(len(got), len(self.TENSORS))
        for one, other in zip(expected, got):
            for key in one:
                try:
                    first, second = float(one[key]), float(other[key])
                except ValueError:
                    self.assertEqual(one[key], other[key])
                    continue
                if not (math.isnan(first) and math.isnan(second)):
                    self.assertAlmostEqual(first, second, delta=1e-6 * abs(first) + 1e-9, msg=str((one, other)))


class Features(MonitorCase):
    def test_attention_of_the_first_head(self):
        from msprobe.pytorch.monitor import features
        torch.manual_seed(9)
        scores = torch.randn(4, 4)
        # With the unit matrix as keys the scores are the queries, but for the root of the size.
        query, key = (scores * 2).reshape(1, 4, 1, 4), torch.eye(4).reshape(1, 4, 1, 4)
        entropy = largest = 0.0
        for row in range(4):
            weights = [math.exp(float(one)) for one in scores[row, :row + 1]]
            weights = [one / sum(weights) for one in weights]
            entropy -= sum(one * math.log(one) for one in weights) / 4
            largest += max(weights) / 4
        for order, tensors in (("b,s,h,d", (query, key)), ("s,b,h,d", (query.transpose(0, 1), key.transpose(0, 1)))):
            got = features.attention(*tensors, order)
            self.assertAlmostEqual(float(got[0]), entropy, places=5)
            self.assertAlmostEqual(float(got[1]), largest, places=5)
        self.assertIsNone(features.attention(query, key, "h,d,s,b"))

    def test_stretch_of_a_weight(self):
        from msprobe.pytorch.monitor import features
        weight = torch.diag(torch.tensor([3.0, 0.01]))
        rank, size = features.stretch(weight, torch.ones(2))
        self.assertAlmostEqual(float(size), 3.0, places=5)
        self.assertAlmostEqual(float(rank), float(weight.norm()) / 3, places=5)

    def test_router(self):
        from msprobe.pytorch.monitor import features
        weight = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
        for one in (weight, weight.t()):
            self.assertAlmostEqual(float(features.router_similarity(one)[0]), math.sqrt(0.5), places=6)
        logits = torch.tensor([[0.0, 0.0], [0.0, -math.inf]])
        self.assertAlmostEqual(float(features.expert_entropy(logits)[0]), math.log(2) / 2, places=6)


if __name__ == "__main__":
    unittest.main()
