# SPDX-License-Identifier: Apache-2.0
"""usage: three_networks.py OURS pytorch|mindspore|msadapter FOLDER [FAULT]

One training step of one network with the same weights and data, written in a framework's own words and recorded at level
L0 by our collector (OURS: the folder of the package) with all values. FAULT: a module whose result is a hundredth larger.
"""
import json
import math
import os
import sys
import zlib

import numpy as np

OURS, FRAMEWORK, FOLDER = sys.argv[1:4]
FAULT = sys.argv[4] if len(sys.argv) > 4 else ""
sys.path.insert(0, OURS)

if FRAMEWORK == "mindspore":
    import mindspore as ms
    from mindspore import nn, ops
    from msprobe.mindspore import PrecisionDebugger

    class Module(nn.Cell):
        def construct(self, *args):
            return self.forward(*args)

    ModuleList = nn.CellList
    tensor = ms.Tensor

    def linear(inputs, outputs):
        return nn.Dense(inputs, outputs)

    def convolution(inputs, outputs):
        return nn.Conv2d(inputs, outputs, 3, pad_mode="pad", padding=1, has_bias=True)

    def layer_norm(size):
        return nn.LayerNorm((size,), epsilon=1e-5)
else:
    if FRAMEWORK == "msadapter":
        import mindtorch  # noqa: F401
        import mindspore as ms
        import torch
        from msprobe.mindspore import PrecisionDebugger
    else:
        import torch
        from msprobe.pytorch import PrecisionDebugger
    from torch import nn
    ops = torch
    Module, ModuleList, tensor = nn.Module, nn.ModuleList, torch.tensor
    linear = nn.Linear
    layer_norm = nn.LayerNorm

    def convolution(inputs, outputs):
        return nn.Conv2d(inputs, outputs, 3, padding=1)

WORDS, WIDTH, CHANNELS, SIZE = 11, 8, 4, 6


class Exact(Module):
    """A module in which a fault is planted."""

    def forward(self, x):
        return x * 1.01 if FAULT and FAULT == self.place else x


class Block(Module):
    def __init__(self, number):
        super().__init__()
        self.norm = layer_norm(WIDTH)
        self.up = linear(WIDTH, 2 * WIDTH)
        self.act = nn.ReLU()
        self.exact = Exact()
        self.exact.place = f"blocks.{number}.exact"
        self.down = linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(self.exact(self.act(self.up(self.norm(x)))))


class Network(Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = ModuleList([Block(number) for number in range(3)])
        self.norm = layer_norm(WIDTH)
        self.patch = convolution(1, CHANNELS)
        # No BatchNorm: that of MSAdapter (mindnlp 0.5.1 on a CPU) writes into its weight and returns ones.
        self.image_norm = nn.GroupNorm(2, CHANNELS)
        self.image_act = nn.ReLU()
        self.flat = nn.Flatten()
        self.pixels = linear(CHANNELS * SIZE * SIZE, WIDTH)
        self.head = linear(WIDTH, 5)

    def forward(self, words, image):
        x = self.words(words)
        for block in self.blocks:
            x = block(x)
        seen = self.pixels(self.flat(self.image_act(self.image_norm(self.patch(image)))))
        return self.head(self.norm(x).sum(1) + seen)


def values(name, shape):
    """The same for one parameter in all frameworks."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    scale = 1 / math.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
    shift = 1 if name.endswith("norm.weight") else 0
    return (shift + scale * random.uniform(-1, 1, shape)).astype(np.float32)


def filled(model):
    if FRAMEWORK == "mindspore":
        own = {"gamma": "weight", "beta": "bias", "embedding_table": "weight"}
        for parameter in model.trainable_params():
            path, _, last = parameter.name.rpartition(".")
            parameter.set_data(ms.Tensor(values(f"{path}.{own.get(last, last)}", parameter.shape)))
        return model.set_train()
    if FRAMEWORK == "msadapter":
        for name, parameter in model.named_parameters():
            parameter.data = torch.tensor(values(name, tuple(parameter.shape)))
        return model.train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(values(name, tuple(parameter.shape))))
    return model.train()


def main():
    os.makedirs(FOLDER)
    config = os.path.join(FOLDER, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"task": "tensor", "dump_path": FOLDER, "level": "L0", "tensor": {}}, file)
    debugger = PrecisionDebugger(config)
    model = filled(Network())
    random = np.random.default_rng(7)
    words = tensor(random.integers(0, WORDS, (2, 6)).astype(np.int32))
    image = tensor(random.standard_normal((2, 1, SIZE, SIZE)).astype(np.float32))

    def loss_of(words, image):
        found = model(words, image)
        return (found * found).mean()

    debugger.start(model)
    if FRAMEWORK == "pytorch":
        loss = loss_of(words, image)
        loss.backward()
    else:
        parameters = model.trainable_params() if FRAMEWORK == "mindspore" else list(model.parameters())
        loss, _ = ms.value_and_grad(loss_of, None, parameters)(words, image)
    debugger.stop()
    debugger.step()
    print(f"{FRAMEWORK}: loss {float(loss):.6f}")


main()
