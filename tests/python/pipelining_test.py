# SPDX-License-Identifier: Apache-2.0
"""Two processes with gloo: the schedules of torch.distributed.pipelining, also those that split the backward, give the
losses and gradients of a run without recording, and a backward of every call."""

import json
import tempfile

from helpers import *

SCHEDULES = {"ScheduleGPipe": 1, "Schedule1F1B": 1, "ScheduleInterleaved1F1B": 2, "ScheduleLoopedBFS": 2,
             "ScheduleInterleavedZeroBubble": 2, "ScheduleZBVZeroBubble": 2, "ScheduleDualPipeV": 2}

SCRIPT = """
import json, os, sys, torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, schedules
from msprobe.pytorch import PrecisionDebugger

rank, folder, level = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "store"), rank=rank, world_size=2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        h = self.norm(x)
        return x + self.o(torch.softmax(self.q(h) @ self.k(h).transpose(-1, -2), -1) @ self.v(h))


def train(name, each, debugger=None):
    torch.manual_seed(0)
    blocks = [nn.Sequential(Block(), Block()) for _ in range(2 * each)]
    there_and_back = name in ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")
    mine = [[0, 3], [1, 2]][rank] if there_and_back else [rank + 2 * number for number in range(each)]
    modules = [blocks[number] for number in mine]
    stages = [PipelineStage(module, number, 2 * each, torch.device("cpu")) for module, number in zip(modules, mine)]
    schedule = getattr(schedules, name)(stages if each > 1 else stages[0], n_microbatches=4,
                                        loss_fn=lambda output, target: (output - target).square().mean())
    torch.manual_seed(5)
    x, target = torch.randn(8, 4, 16), torch.randn(8, 4, 16)
    losses = []
    if debugger is not None:
        debugger.start(modules)
    schedule.step(*([x] if rank == 0 else []), **({"target": target, "losses": losses} if 2 * each - 1 in mine else {}))
    if debugger is not None:
        debugger.stop()
        debugger.step()
    return losses + [parameter.grad for module in modules for parameter in module.parameters()]


debugger = PrecisionDebugger(dump_path=os.path.join(folder, "out"), level=level, task="statistics")
done = []
for name, each in json.loads(sys.argv[4]).items():
    if hasattr(schedules, name):
        plain, recorded = train(name, each), train(name, each, debugger)
        assert len(plain) == len(recorded) and all(map(torch.equal, plain, recorded)), name
        done.append(name)
dist.destroy_process_group()
print(json.dumps(done))
"""


class Pipelining(Case):
    def run_level(self, level):
        folder = tempfile.mkdtemp(dir=self.folder)
        done = json.loads(run_two_ranks(folder, SCRIPT, level, json.dumps(SCHEDULES))[0].splitlines()[-1])
        self.assertIn("ScheduleInterleavedZeroBubble", done)
        for step, name in enumerate(done):
            for rank in range(2):
                tree = find_tree(os.path.join(folder, "out"), step, rank)
                self.assertEqual(tree.errors, "")
                # Four micro batches of stages with twelve modules. Call 0 is PyTorch's, which finds out shapes.
                for number in range(1, 5):
                    calls = [one for one in tree.names if one.endswith(".backward.%d" % number)]
                    self.assertEqual(len(set(calls)), 12 * SCHEDULES[name], (name, rank, number))

    def test_schedules(self):
        try:
            import torch.distributed.pipelining.schedules as schedules
            schedules.ScheduleInterleavedZeroBubble
        except (ImportError, AttributeError):
            self.skipTest("this PyTorch has no torch.distributed.pipelining")
        for level in ("L0", "mix"):
            self.run_level(level)


if __name__ == "__main__":
    unittest.main()
