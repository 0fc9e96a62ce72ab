#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the sample dumps: one forward pass of a tiny language model, two ranks, run three times.

usage: make_samples.py [OUT [RUN...]]        (default: the folder of this script, all runs)

The golden run uses epsilon 1e-6 in every LayerNorm. The run `target` plays a port to another device: its
weights are off by rounding, and one LayerNorm was left at PyTorch's default, 1e-5. The run `tile` has the golden
model, weights and tokens, and a broken kernel: on rank 1 one matrix product leaves a tile of its result as the
call before left it in memory. Needs torch and the Python msprobe; the dumps are theirs, only stack.json is cut to
the frames of this script, under a neutral path.
"""

import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile

RANKS = 2
BATCH, SEQUENCE, WIDTH, HEADS, LAYERS, VOCABULARY = 2, 8, 16, 2, 2, 23
LINEARS_A_LAYER = 4
BROKEN_CALL = LINEARS_A_LAYER + 2  # fc1 of the second layer


def break_linear(call):
    """Below the recorder, as a kernel is: the given call does not write the tile of its last 4 rows and 8 columns."""
    import torch
    from torch.nn import functional

    right, results = functional.linear, []

    def linear(*arguments):
        result = right(*arguments)
        if len(results) == call:
            stale = next(old for old in reversed(results) if old.shape == result.shape)
            with torch.no_grad():
                result[-1, -4:, -8:] = stale[-1, -4:, -8:]
        results.append(result)
        return result

    functional.linear = linear


def build_model(target):
    import torch
    from torch import nn
    from torch.nn import functional

    class Layer(nn.Module):
        def __init__(self, index):
            super().__init__()
            self.norm1 = nn.LayerNorm(WIDTH, eps=1e-6)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.norm2 = nn.LayerNorm(WIDTH, eps=1e-5 if target and index == 1 else 1e-6)
            self.fc1 = nn.Linear(WIDTH, 2 * WIDTH)
            self.fc2 = nn.Linear(2 * WIDTH, WIDTH)

        def forward(self, hidden):
            parts = self.qkv(self.norm1(hidden)).view(BATCH, SEQUENCE, 3, HEADS, WIDTH // HEADS)
            query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            hidden = hidden + self.out(mixed.transpose(1, 2).reshape(BATCH, SEQUENCE, WIDTH))
            return hidden + self.fc2(functional.gelu(self.fc1(self.norm2(hidden))))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = nn.ModuleList([Layer(index) for index in range(LAYERS)])
            self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
            for name, weight in self.named_parameters():
                if weight.dim() > 1:
                    nn.init.normal_(weight, std=0.02)  # as language models do: activations start out small
                elif name.endswith("bias"):
                    nn.init.zeros_(weight)

        def forward(self, tokens):
            hidden = self.embedding(tokens)
            for layer in self.layers:
                hidden = layer(hidden)
            return self.head(self.norm(hidden))

    torch.manual_seed(7)
    model = Decoder()
    if target:
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.0 + 2e-7 * torch.randn_like(weight))
    return model


def train(rank, port, side, config_path, folder):
    os.chdir(folder)
    import torch
    from torch import distributed
    from torch.nn import functional

    if side == "tile" and rank == 1:
        break_linear(BROKEN_CALL)
    from msprobe.pytorch import PrecisionDebugger

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.init_process_group("gloo", rank=rank, world_size=RANKS)
    debugger = PrecisionDebugger(config_path=config_path)
    model = build_model(side == "target")
    generator = torch.Generator().manual_seed(40 + rank)
    tokens = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE + 1), generator=generator)
    debugger.start(model=model)
    logits = model(tokens[:, :-1])
    loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
    distributed.all_reduce(loss)
    debugger.stop()
    debugger.step()
    distributed.destroy_process_group()


def clean_stacks(folder):
    """Takes the machine's paths out of the stacks; the library's frames say nothing about the model."""
    own = str(pathlib.Path(__file__).resolve())
    for path in folder.rglob("stack.json"):
        groups = json.loads(path.read_text())
        for _, frames in groups.values():
            frames[:] = [frame.replace(own, "/srv/train/decoder.py") for frame in frames if own in frame]
        path.write_text(json.dumps(groups, indent=1))
    for path in folder.rglob("construct.json"):
        path.unlink()  # empty at level L1


def main():
    try:
        import torch
        import msprobe.pytorch  # noqa: F401
    except ImportError as error:
        raise SystemExit(f"torch and the Python msprobe are needed: {error}") from None
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent).resolve()
    for side in sys.argv[2:] or ("golden", "target", "tile"):
        shutil.rmtree(out / side, ignore_errors=True)
        config = {
            "task": "tensor",
            "dump_path": f"./{side}",
            "rank": [],
            "step": [],
            "level": "L1",
            "tensor": {"scope": [], "list": [], "data_mode": ["forward"]},
        }
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch, socket.socket() as probe:
            path = pathlib.Path(scratch) / "config.json"
            path.write_text(json.dumps(config))
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            probe.close()
            torch.multiprocessing.spawn(train, (port, side, str(path), str(out)), nprocs=RANKS, join=True)
        clean_stacks(out / side)


if __name__ == "__main__":
    main()
