#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes dumps of one training step on two ranks in which NaN or Inf begins at a known place.

usage: make_nan_samples.py OUT [FAULT]...        (default: every fault)

  before   a row of padding reaches a normalisation without epsilon, earlier than all communication
  between  the same in the second layer of rank 1, between two all_reduce calls
  inside   gradients in float16 that are finite on each rank overflow in the sum of all_reduce
  after    the logarithm of a probability of zero in the loss, behind the last communication

The layers are split over the ranks (each adds its part, all_reduce sums up). Needs torch and the Python msprobe; the
dumps are theirs, only stack.json is cut to the frames of this script and one of torch, under neutral paths.
"""

import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile

RANKS = 2
BATCH, WIDTH = 4, 8
FAULTS = ("before", "between", "inside", "after")


def build_model(rank, fault):
    import torch
    from torch import distributed, nn

    class Norm(nn.Module):
        """Root mean square norm; a row of zeros has none without the epsilon."""

        def __init__(self, epsilon):
            super().__init__()
            self.epsilon = epsilon
            self.weight = nn.Parameter(torch.ones(WIDTH))

        def forward(self, hidden):
            square = torch.mean(torch.square(hidden), dim=-1, keepdim=True)
            return hidden * torch.rsqrt(square + self.epsilon) * self.weight

    class Sum(torch.autograd.Function):
        """Sums up the parts of all ranks on the way forward."""

        @staticmethod
        def forward(ctx, part):
            total = part.clone()
            distributed.all_reduce(total)
            return total

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Layer(nn.Module):
        def __init__(self, index):
            super().__init__()
            here = rank == 1 and (index, fault) in ((0, "before"), (1, "between"))
            self.padding = here
            self.norm = Norm(0.0 if here else 1e-6)
            self.linear = nn.Linear(WIDTH, WIDTH)

        def forward(self, hidden):
            if self.padding:
                hidden = torch.cat([hidden[:-1], torch.zeros(1, WIDTH)])
            return hidden + Sum.apply(self.linear(self.norm(hidden)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Layer(0), Layer(1)])
            self.head = nn.Linear(WIDTH, 3)

        def forward(self, hidden):
            for layer in self.layers:
                hidden = layer(hidden)
            return torch.softmax(self.head(hidden), dim=-1)

    torch.manual_seed(rank)
    return Net()


def sum_gradients(model, fault):
    import torch
    from torch import distributed

    for weight in model.parameters():
        gradient = weight.grad
        if fault == "inside" and weight is model.head.bias:
            # Loss scaling without a limit does this.
            gradient = torch.full_like(gradient, 40000.0).to(torch.float16)
        distributed.all_reduce(gradient)


def train(rank, port, fault, config_path, folder):
    os.chdir(folder)
    import torch
    from torch import distributed
    from msprobe.pytorch import PrecisionDebugger

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=RANKS)
    debugger = PrecisionDebugger(config_path=config_path)
    model = build_model(rank, fault)
    inputs = torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(7))
    debugger.start(model=model)
    probability = model(inputs)
    loss = -torch.log(probability[:, 0]).mean()
    loss.backward()
    sum_gradients(model, fault)
    confidence = probability.detach()[:, 0]
    if fault == "after" and rank == 0:
        confidence = torch.sub(confidence, confidence)
    torch.mean(torch.log(confidence))
    debugger.stop()
    debugger.step()
    distributed.destroy_process_group()


def clean_stacks(folder):
    """Takes the machine's paths out of the stacks; of the library's own frames the innermost is kept."""
    own = str(pathlib.Path(__file__).resolve())
    for path in folder.rglob("stack.json"):
        groups = json.loads(path.read_text())
        for _, frames in groups.values():
            kept = []
            for frame in frames:
                if own in frame:
                    kept.append(frame.replace(own, "/srv/train/step.py"))
                elif not kept and "/torch/" in frame:
                    place = frame.split("/torch/", 1)[1].split(", \n ", 1)[0]
                    kept.append(f"File /usr/lib/python3/dist-packages/torch/{place}, \n ...")
            frames[:] = kept
        path.write_text(json.dumps(groups, indent=1))


def main():
    try:
        import torch
        import msprobe.pytorch  # noqa: F401
    except ImportError as error:
        raise SystemExit(f"torch and the Python msprobe are needed: {error}") from None
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(FAULTS):
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    for fault in sys.argv[2:] or FAULTS:
        shutil.rmtree(out / fault, ignore_errors=True)
        config = {
            "task": "statistics",
            "dump_path": f"./{fault}",
            "rank": [],
            "step": [],
            "level": "mix",
            "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
        }
        with tempfile.TemporaryDirectory() as scratch, socket.socket() as probe:
            path = pathlib.Path(scratch) / "config.json"
            path.write_text(json.dumps(config))
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            probe.close()
            torch.multiprocessing.spawn(train, (port, fault, str(path), str(out)), nprocs=RANKS, join=True)
        clean_stacks(out / fault)


if __name__ == "__main__":
    main()
