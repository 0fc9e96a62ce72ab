#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mindspore_scenarios.py SCENARIO FOLDER [JSON]

The same as collector_scenarios.py, for MindSpore's dynamic graph on the CPU.
"""
import numpy as np

import mindspore as ms
from mindspore import Tensor, mint, nn, ops

from collector_run import main


class Block(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.l1 = nn.Dense(width, width)
        self.act = nn.ReLU()

    def construct(self, x):
        return x + self.act(self.l1(x))


class Blocks(nn.Cell):
    """Cells that call primitives, and functions of three namespaces between them."""

    def __init__(self, width=4):
        super().__init__()
        self.b1 = Block(width)
        self.b2 = Block(width)
        self.out = nn.Dense(width, 2)

    def construct(self, x):
        x = mint.nn.functional.relu(self.b1(x))
        x = mint.add(ops.tanh(x), 1.0)
        return self.out(self.b2(x))


class Attention(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Dense(width, 3 * width)
        self.proj = nn.Dense(width, width)

    def construct(self, x):
        batch, length, width = x.shape
        q, k, v = ops.split(self.qkv(x), width, axis=-1)
        parts = [part.reshape((batch, length, self.heads, width // self.heads)).transpose(0, 2, 1, 3)
                 for part in (q, k, v)]
        score = ops.softmax(ops.matmul(parts[0], parts[1].transpose(0, 1, 3, 2)) / (width // self.heads) ** 0.5, axis=-1)
        return self.proj(ops.matmul(score, parts[2]).transpose(0, 2, 1, 3).reshape((batch, length, width)))


class Layer(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.norm = nn.LayerNorm((width,))
        self.attention = Attention(width, heads)
        self.up = nn.Dense(width, 2 * width)
        self.act = nn.GELU()
        self.drop = nn.Dropout(p=0.0)
        self.down = nn.Dense(2 * width, width)

    def construct(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.drop(self.down(self.act(self.up(x))))


class Decoder(nn.Cell):
    def __init__(self, words=50, width=8, heads=2):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.CellList([Layer(width, heads) for _ in range(2)])
        self.head = nn.Dense(width, words)

    def construct(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Shared(nn.Cell):
    """One cell called twice, keyword arguments, tuples, lists and dicts going in and out."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Dense(4, 4)
        self.inner = Structured()

    def construct(self, x):
        y = self.layer(ops.tanh(self.layer(x)))
        total, (shifted, flags) = self.inner(y, scale=0.5, options={"shift": ops.ones((4,)), "flags": (True, None, "text")})
        return total + shifted * len(flags)


class Structured(nn.Cell):
    def construct(self, x, scale=1.0, options=None):
        shifted = x * scale + options["shift"]
        return shifted.sum(axis=-1, keepdims=True), (shifted, ["a", 3])


def filled(model):
    """The same parameters in every run."""
    numbers = np.random.default_rng(7)
    for parameter in model.get_parameters():
        parameter.set_data(Tensor((numbers.normal(size=parameter.shape) / 2).astype(np.float32)))
    return model


def floats(*shape, seed=3):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def train(debugger, model, loss_of, inputs, steps=2, start_model=None, micro=1):
    weights = model.trainable_params()
    gradients_of = ms.value_and_grad(lambda x: loss_of(model(x)), None, weights)
    losses = []
    for _ in range(steps):
        debugger.start(start_model) if start_model is not None else debugger.start()
        for _ in range(micro):
            loss, gradients = gradients_of(inputs)
        debugger.stop()
        debugger.step()
        for weight, gradient in zip(weights, gradients):
            weight.set_data(Tensor(weight.asnumpy() - 0.01 * gradient.asnumpy()))
        losses.append(float(loss.asnumpy()))
    return losses


def square(y):
    return (y * y).mean()


def blocks(debugger):
    model = filled(Blocks())
    return train(debugger, model, square, floats(3, 4), start_model=model)


def blocks_alone(debugger):
    return train(debugger, filled(Blocks()), square, floats(3, 4))


def blocks_micro(debugger):
    model = filled(Blocks())
    return train(debugger, model, square, floats(3, 4), start_model=model, micro=3)


def model_list(debugger):
    model = filled(Blocks())
    return train(debugger, model, square, floats(3, 4), start_model=[model])


def decoder(debugger):
    model = filled(Decoder())
    tokens = np.random.default_rng(5).integers(0, 50, (2, 6)).astype(np.int32)
    target = Tensor(tokens.reshape(-1))
    return train(debugger, model, lambda y: ops.cross_entropy(y.reshape((-1, 50)), target), Tensor(tokens),
                 start_model=model)


def shared(debugger):
    model = filled(Shared())
    return train(debugger, model, square, floats(3, 4), start_model=model)


def half(debugger):
    """Half types, forward and backward."""
    a, b = floats(4, 4), floats(4, 4, seed=4)

    def loss_of(x):
        total = Tensor(0.0, ms.float32)
        for dtype in (ms.float16, ms.bfloat16):
            total = total + ops.cast(ops.cast(x, dtype) * ops.cast(b, dtype), ms.float32).sum()
        return total

    debugger.start()
    loss, _ = ms.value_and_grad(loss_of)(a)
    debugger.stop()
    debugger.step()
    return [float(loss.asnumpy())]


def arguments(debugger):
    """Every kind of argument, and the types of elements."""
    debugger.start()
    x = floats(2, 3)
    odd = Tensor(np.array([1.0, np.nan, np.inf], np.float32))
    ops.square(odd)
    ops.concat([x, x], axis=0)
    ops.stack((x, x))
    ops.split(x, 1, axis=1)
    ops.cast(x, ms.float16)
    x.astype(dtype=ms.int32)
    ops.full((2, 2), 1.5, dtype=ms.float32)
    ops.clamp(x, None, 0.5)
    ops.expand_dims(x, -1)
    mint.sum(x, dim=1, keepdim=True)
    mint.max(x, dim=1)
    x.transpose(1, 0) @ x
    x > 0
    ops.logical_not(x > 0)
    1 - x
    x.add_(1.0)
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.float16, np.float64):
        ops.reshape(Tensor(np.arange(6).astype(dtype)), (2, 3))
    ops.reshape(Tensor(np.array([1 + 2j, 3 - 4j], np.complex64)), (2, 1))
    ops.reshape(Tensor(np.array([True, False])), (2, 1))
    ops.reshape(Tensor(np.float32(2.5)), (1,))
    ops.reshape(Tensor(np.int32(7)), (1,))
    debugger.stop()
    debugger.step()
    return []


def saved(debugger):
    """Level debug: values and their gradients."""
    weight = ms.Parameter(floats(3, 3), name="w")
    losses = []

    def loss_of(x):
        y = ops.matmul(x, weight)
        debugger.save(y, "y")
        debugger.save({"a": x, "list": [y, 1, "text"]}, "nested")
        debugger.save(x, "plain", save_backward=False)
        return (y * y).sum()

    for _ in range(2):
        loss, _ = ms.value_and_grad(loss_of, None, [weight])(floats(2, 3, seed=8))
        debugger.step()
        losses.append(float(loss.asnumpy()))
    return losses


SCENARIOS = {
    "blocks_L1": (blocks, {"level": "L1"}),
    "blocks_alone": (blocks_alone, {"level": "L1"}),
    "blocks_L0": (blocks, {"level": "L0"}),
    "blocks_mix": (blocks, {"level": "mix"}),
    "blocks_micro": (blocks_micro, {"level": "mix"}),
    "model_list": (model_list, {"level": "L0"}),
    "decoder_L1": (decoder, {"level": "L1"}),
    "decoder_L0": (decoder, {"level": "L0"}),
    "decoder_mix": (decoder, {"level": "mix"}),
    "decoder_list": (decoder, {"level": "mix", "statistics": {"list": ["layers.1.attention"]}}),
    "decoder_scope": (decoder, {"level": "L1", "statistics": {
        "scope": ["Functional.split.0.forward", "Functional.softmax.1.forward"]}}),
    "decoder_forward": (decoder, {"level": "mix", "statistics": {"data_mode": ["forward", "output"]}}),
    "decoder_md5": (decoder, {"level": "mix", "statistics": {"summary_mode": "md5"}}),
    "decoder_tensor": (decoder, {"level": "mix", "task": "tensor", "tensor": {}}),
    "decoder_tensor_list": (decoder, {"level": "L1", "statistics": {"tensor_list": ["softmax"]}}),
    "decoder_structure": (decoder, {"level": "mix", "task": "structure", "structure": {}}),
    "decoder_steps": (decoder, {"level": "L1", "step": [1]}),
    "shared_mix": (shared, {"level": "mix"}),
    "half_md5": (half, {"level": "L1", "statistics": {"summary_mode": "md5"}}),
    "half_tensor": (half, {"level": "L1", "task": "tensor", "tensor": {}}),
    "arguments_md5": (arguments, {"level": "L1", "statistics": {"summary_mode": "md5"}}),
    "saved": (saved, {"level": "debug"}),
    "saved_tensor": (saved, {"level": "debug", "task": "tensor", "tensor": {}}),
}


def give_kernels():
    """The Python tool measures with functions that have no kernel on the CPU (bfloat16: any): NumPy replaces them."""
    def by_numpy(name, original):
        def measured(x, *args, **kwargs):
            if args or kwargs or (name != "norm" and x.dtype != ms.bfloat16):
                return original(x, *args, **kwargs)
            numbers = x.asnumpy().astype(np.float64)
            return Tensor(np.float32(np.linalg.norm(numbers) if name == "norm" else getattr(np, name)(numbers)))
        return measured

    for name in ("max", "min", "mean", "norm"):
        setattr(mint, name, by_numpy(name, getattr(mint, name)))


def _debugger_type():
    from msprobe.mindspore import PrecisionDebugger
    return PrecisionDebugger


def run():
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    give_kernels()
    main(SCENARIOS, _debugger_type)


if __name__ == "__main__":
    run()
