# SPDX-License-Identifier: Apache-2.0
"""Two processes with gloo: asynchronous communication is recorded when it is waited for."""

import json
import sys

from helpers import *

SCRIPT = """
import os, sys, torch
import torch.distributed as dist
from msprobe.pytorch import PrecisionDebugger
rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
debugger = PrecisionDebugger(config_path=os.path.join(folder, "config.json"))
debugger.start()
torch.nn.functional.relu(torch.ones(2))
dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "store"), rank=rank, world_size=2)
x = torch.full((4,), float(rank + 1))
work = dist.all_reduce(x, async_op=True)
work.wait()
y = torch.full((3,), float(rank))
dist.all_reduce(y, group=dist.group.WORLD)
parts = [torch.zeros(2), torch.zeros(2)]
dist.all_gather(parts, torch.full((2,), float(rank)))
if hasattr(dist, "all_gather_single"):
    whole, part = torch.zeros(4), torch.zeros(2)
    dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
    dist.all_gather_single(output_tensor=whole, input_tensor=torch.full((2,), float(rank) + 2))
    dist.reduce_scatter_single(output=part, input=torch.ones(4))
if rank == 0:
    dist.send(torch.ones(2) * 7, dst=1)
else:
    got = torch.zeros(2)
    dist.recv(got, src=0)
z = torch.ones(5)
never = dist.all_reduce(z, async_op=True)
torch.nn.functional.relu(x)
dist.barrier()
debugger.stop()
debugger.step()
from msprobe.pytorch import distributed
assert not distributed._pending
dist.destroy_process_group()
"""


DATA_PARALLEL = """
import os, sys, torch
import torch.distributed as dist
from msprobe.pytorch import PrecisionDebugger
rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "store"), rank=rank, world_size=2)
debugger = PrecisionDebugger(config_path=os.path.join(folder, "config.json"))
for view in (False, True):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1), gradient_as_bucket_view=view)
    debugger.start(model)
    model(torch.full((1, 2), float(rank + 1))).sum().backward()
    if not view:
        x, y = torch.full((2,), float(rank)), torch.zeros(2)
        pair = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]
        for work in dist.batch_isend_irecv(pair):
            work.wait()
    debugger.stop()
    debugger.step()
    assert model.module.weight.grad.tolist() == [[1.5, 1.5]], model.module.weight.grad
dist.destroy_process_group()
"""


class Distributed(Case):
    def run_two(self, text, config):
        dump_path = os.path.join(self.folder, "dump")
        with open(os.path.join(self.folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(dict({"dump_path": dump_path, "risk_level": "ALL"}, **config), file)
        run_two_ranks(self.folder, text)
        return dump_path

    def test_gradients_are_those_of_the_rank(self):
        """Gradients are read before they are averaged, in any memory; tensors of a P2POp have files named by their place."""
        dump_path = self.run_two(DATA_PARALLEL, {"level": "mix", "task": "tensor", "tensor": {}})
        # Before 2.1 a gradient in a bucket is read while it is averaged.
        for step in (0, 1) if VERSION >= (2, 1) else (0,):
            for rank in (0, 1):
                tree = find_tree(dump_path, step, rank)
                self.assertEqual(tree.errors, "")
                gradient = tree.data["Module.module.Linear.parameters_grad.0"]["weight"][0]["Max"]
                self.assertEqual(gradient, rank + 1.0)
        sent = find_tree(dump_path, 0, 0).data["Distributed.batch_isend_irecv.0.forward"]["input_args"][0]
        self.assertEqual([one["tensor"]["data_name"] for one in sent],
                         ["Distributed.batch_isend_irecv.0.forward.input.0.%d.tensor.pt" % n for n in (0, 1)])

    def assert_newer_names(self, tree):
        """One entry a call, under the name that the function has in every version."""
        calls = [name.rpartition(".")[0] for name in tree.names if "_single" in name or "_tensor" in name]
        self.assertEqual(calls, ["Distributed.all_gather_into_tensor.0", "Distributed.all_gather_into_tensor.1",
                                 "Distributed.reduce_scatter_tensor.0"])
        gathered = tree.data[calls[1] + ".forward"]
        self.assertIsNone(gathered["input_kwargs"]["output_tensor"])
        self.assertEqual(gathered["output"][0]["Max"], 3.0)
        reduced = tree.data[calls[2] + ".forward"]
        self.assertEqual((reduced["input_kwargs"]["output"], reduced["input_kwargs"]["input"]["Max"]), (None, 1.0))

    def test_two_processes(self):
        dump_path = self.run_two(SCRIPT, {"task": "statistics", "level": "L1"})
        trees = [find_tree(dump_path, 0, rank) for rank in (0, 1)]
        self.assertEqual(sorted(os.listdir(os.path.join(dump_path, "step0"))), ["rank0", "rank1"])
        for rank, tree in enumerate(trees):
            self.assertEqual(tree.errors, "")
            self.assertEqual(tree.names[0], "Functional.relu.0.forward")
            reduced = tree.data["Distributed.all_reduce.0.forward"]
            self.assertEqual(reduced["input_args"][0]["Max"], float(rank + 1))
            self.assertEqual(reduced["output"][0]["Max"], 3.0)
            self.assertEqual(reduced["output"][-1], {"type": "bool", "value": True})
            group = tree.data["Distributed.all_reduce.1.forward"]["input_kwargs"]["group"]
            self.assertEqual(group, {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "77849d8c"})
            gathered = tree.data["Distributed.all_gather.0.forward"]
            self.assertIsNone(gathered["input_args"][0])
            self.assertEqual([part["Max"] for part in gathered["output"][0]], [0.0, 1.0])
            self.assertIn("output", tree.data["Distributed.all_reduce.2.forward"])
            if hasattr(torch.distributed, "all_gather_single"):
                self.assert_newer_names(tree)
        self.assertEqual(trees[0].data["Distributed.send.0.forward"]["output"][0]["Max"], 7.0)
        received = trees[1].data["Distributed.recv.0.forward"]
        self.assertIsNone(received["input_args"][0])
        self.assertEqual(received["output"][0]["Max"], 7.0)


if __name__ == "__main__":
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available() if hasattr(
            torch.distributed, "is_gloo_available") else not torch.distributed.is_available():
        print("SKIPPED: this PyTorch has no gloo")
        sys.exit(77)
    unittest.main()
